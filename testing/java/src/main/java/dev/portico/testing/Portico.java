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
 * A Kubernetes API for the tests of a class, without a cluster, that fails on request: a static field with {@code @RegisterExtension}.
 *
 * <p>Its standard input is open as long as this process lives, and the server ends with that. No fault is left after a test.
 */
public final class Portico implements BeforeAllCallback, AfterEachCallback, AfterAllCallback, AutoCloseable {
  private static final List<String> ARGUMENTS =
      List.of("run", "--ephemeral", "--test-faults", "--exit-with-stdin", "--ready-format", "json", "-v", "error");
  private static final String FAULTS = "/portico/test-faults";
  /** Far beyond what a start or an end takes, for machines that builds keep busy. */
  private static final long PATIENCE_SECONDS = 60;

  private final List<String> flags;
  private Process process;
  private Map<?, ?> ready;
  private KubernetesClient client;

  /** With these flags of Portico, too. */
  public Portico(String... flags) {
    this.flags = List.of(flags);
  }

  /** Starts the server, and waits until it serves: for who does not use JUnit. */
  public Portico start() throws IOException {
    var program = System.getenv().getOrDefault("PORTICO_BIN", "portico");
    var command = new ArrayList<>(List.of(program));
    command.addAll(ARGUMENTS);
    command.addAll(flags);
    try {
      process = new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.INHERIT).start();
    } catch (IOException error) {
      throw new IOException("put portico on the PATH, or name it in PORTICO_BIN", error);
    }
    var late = CompletableFuture.delayedExecutor(PATIENCE_SECONDS, TimeUnit.SECONDS);
    var started = new CompletableFuture<Void>();
    CompletableFuture.runAsync(() -> { if (!started.isDone()) process.destroyForcibly(); }, late);
    var line = process.inputReader(StandardCharsets.UTF_8).readLine();
    started.complete(null);
    if (line == null) {
      close();
      throw new IOException(program + " has ended with " + process.exitValue() + " before it was ready");
    }
    ready = new KubernetesSerialization().unmarshal(line, Map.class);
    client = new KubernetesClientBuilder().withConfig(Config.fromKubeconfig(kubeconfig())).build();
    return this;
  }

  /** A client of an administrator. */
  public KubernetesClient client() {
    return client;
  }

  /** The administrator's kubeconfig. */
  public File kubeconfig() {
    return new File((String) ready.get("kubeconfig"));
  }

  /** {@code https://HOST:PORT} */
  public String url() {
    return (String) ready.get("url");
  }

  /** Lets a fault happen from now on. An exception has the server's words for what makes no sense. */
  public SetFault fault(Fault fault) {
    return new SetFault(FAULTS + "/" + ask("POST", FAULTS, fault.rule()).get("id"));
  }

  /** Removes all faults. */
  public void clearFaults() {
    ask("DELETE", FAULTS, null);
  }

  /** Ends the server and removes its data. */
  @Override
  public void close() throws IOException {
    if (client != null) {
      client.close();
    }
    process.getOutputStream().close();
    try {
      if (!process.waitFor(PATIENCE_SECONDS, TimeUnit.SECONDS)) {
        throw new IOException("the server does not end");
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

  /** A fault that is set. */
  public final class SetFault {
    private final String path;

    private SetFault(String path) {
      this.path = path;
    }

    /** To how many requests it has happened. */
    public int hits() {
      return ((Number) ask("GET", path, null).get("hits")).intValue();
    }

    /** Removes it; gives back to how many requests it has happened. */
    public int remove() {
      return ((Number) ask("DELETE", path, null).get("hits")).intValue();
    }
  }
}
