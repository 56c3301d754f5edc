package dev.portico.testing;

import io.fabric8.kubernetes.client.Config;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.KubernetesClientBuilder;
import io.fabric8.kubernetes.client.utils.KubernetesSerialization;
import java.io.File;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.extension.AfterAllCallback;
import org.junit.jupiter.api.extension.AfterEachCallback;
import org.junit.jupiter.api.extension.BeforeAllCallback;
import org.junit.jupiter.api.extension.ExtensionContext;

/**
 * A Kubernetes API server for the tests of a class, with faults on request. Declare it as a static field with {@code @RegisterExtension}.
 *
 * <p>The server exits when its standard input closes, at the latest with this process. Faults are removed after each test.
 */
public final class Portico implements BeforeAllCallback, AfterEachCallback, AfterAllCallback, AutoCloseable {
  private static final List<String> ARGUMENTS =
      List.of("run", "--ephemeral", "--test-faults", "--exit-with-stdin", "--ready-format", "json", "-v", "error");
  private static final String FAULTS = "/portico/test-faults";
  /** Timeout for start and stop. Generous, because test machines can be busy. */
  private static final long TIMEOUT_SECONDS = 60;

  private final List<String> flags;
  private Process process;
  private Map<?, ?> ready;
  private KubernetesClient client;

  /** A server with additional flags of Portico. */
  public Portico(String... flags) {
    this.flags = List.of(flags);
  }

  /** Starts the server and waits until it is ready. JUnit calls it; call it yourself elsewhere. */
  public Portico start() throws IOException {
    var program = System.getenv().getOrDefault("PORTICO_BIN", "portico");
    var command = new ArrayList<>(List.of(program));
    command.addAll(ARGUMENTS);
    command.addAll(flags);
    try {
      process = new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.INHERIT).start();
    } catch (IOException error) {
      throw new IOException("cannot start " + program + "; install portico on the PATH or set PORTICO_BIN", error);
    }
    var late = CompletableFuture.delayedExecutor(TIMEOUT_SECONDS, TimeUnit.SECONDS);
    var started = new CompletableFuture<Void>();
    CompletableFuture.runAsync(() -> { if (!started.isDone()) process.destroyForcibly(); }, late);
    var line = process.inputReader(StandardCharsets.UTF_8).readLine();
    started.complete(null);
    if (line == null) {
      close();
      throw new IOException(program + " exited with " + process.exitValue() + " before it was ready");
    }
    ready = new KubernetesSerialization().unmarshal(line, Map.class);
    client = new KubernetesClientBuilder().withConfig(Config.fromKubeconfig(kubeconfig())).build();
    return this;
  }

  /** Client with an administrator's credentials. */
  public KubernetesClient client() {
    return client;
  }

  /** An administrator's kubeconfig. */
  public File kubeconfig() {
    return new File((String) ready.get("kubeconfig"));
  }

  /** {@code https://HOST:PORT} */
  public String url() {
    return (String) ready.get("url");
  }

  /** Sets a fault. Throws an exception with the server's message if the fault is invalid. */
  public SetFault fault(Fault fault) {
    return new SetFault(FAULTS + "/" + ask("POST", FAULTS, fault.rule()).get("id"));
  }

  /** Removes all faults. */
  public void clearFaults() {
    ask("DELETE", FAULTS, null);
  }

  /** Stops the server and removes its data. */
  @Override
  public void close() throws IOException {
    if (client != null) {
      client.close();
    }
    process.getOutputStream().close();
    try {
      if (!process.waitFor(TIMEOUT_SECONDS, TimeUnit.SECONDS)) {
        throw new IOException("the server does not exit");
      }
    } catch (InterruptedException interrupted) {
      Thread.currentThread().interrupt();
    } finally {
      process.destroyForcibly();
    }
  }

  @Override
  public void beforeAll(ExtensionContext context) throws IOException {
    start();
  }

  @Override
  public void afterEach(ExtensionContext context) {
    clearFaults();
  }

  @Override
  public void afterAll(ExtensionContext context) throws IOException {
    close();
  }

  private Map<?, ?> ask(String method, String path, Object body) {
    return client.getKubernetesSerialization().unmarshal(client.raw(path, method, body), Map.class);
  }

  /** A fault that is set on the server. */
  public final class SetFault {
    private final String path;

    private SetFault(String path) {
      this.path = path;
    }

    /** Returns the number of requests that the fault has affected. */
    public int hits() {
      return ((Number) ask("GET", path, null).get("hits")).intValue();
    }

    /** Removes the fault. Returns the number of requests that it has affected. */
    public int remove() {
      return ((Number) ask("DELETE", path, null).get("hits")).intValue();
    }
  }
}
