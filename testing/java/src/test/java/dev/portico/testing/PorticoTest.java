package dev.portico.testing;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.fabric8.kubernetes.api.model.ConfigMap;
import io.fabric8.kubernetes.api.model.ConfigMapBuilder;
import io.fabric8.kubernetes.client.KubernetesClientException;
import io.fabric8.kubernetes.client.dsl.Resource;
import java.io.IOException;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

class PorticoTest {
  @RegisterExtension static final Portico portico = new Portico();

  private static Resource<ConfigMap> map(String name) {
    var object = new ConfigMapBuilder().withNewMetadata().withName(name).withNamespace("default").endMetadata().build();
    return portico.client().resource(object);
  }

  private static Fault maps(Fault fault) {
    return fault.resource("", "configmaps");
  }

  @Test
  void requestsAreRefusedAsOftenAsIsAskedFor() {
    for (int code : new int[] {409, 410}) {
      var fault = portico.fault(maps(Fault.status(code)).verbs("create").times(1));
      portico.client().secrets().inNamespace("default").list();
      var refused = assertThrows(KubernetesClientException.class, () -> map("refused-" + code).create());
      assertEquals(code, refused.getCode());
      map("refused-" + code).create();
      assertEquals(1, fault.remove());
    }
  }

  @Test
  void requestsAreLateAndReadsAreStale() {
    var late = portico.fault(maps(Fault.latency(Duration.ofMillis(200))).times(1));
    var began = System.nanoTime();
    map("late").create();
    assertTrue(System.nanoTime() - began >= 200_000_000);
    assertEquals(1, late.hits());
    portico.fault(maps(Fault.staleReads()));
    map("new").create();
    assertNull(map("new").get());
    portico.clearFaults();
    assertNotNull(map("new").get());
  }

  @Test
  void anInformerGoesOnAfterItsWatchesEnded() throws InterruptedException {
    BlockingQueue<String> added = new LinkedBlockingQueue<>();
    try (var informer = portico.client().configMaps().inNamespace("default").inform(new io.fabric8.kubernetes.client.informers.ResourceEventHandler<>() {
      @Override public void onAdd(ConfigMap map) { added.add(map.getMetadata().getName()); }
      @Override public void onUpdate(ConfigMap before, ConfigMap after) {}
      @Override public void onDelete(ConfigMap map, boolean unknown) {}
    })) {
      for (var each : Map.of("cut", Fault.cutWatch(), "expired", Fault.expireWatch()).entrySet()) {
        portico.fault(maps(each.getValue()).times(1));
        map(each.getKey()).create();
        String name;
        do {
          name = added.poll(30, TimeUnit.SECONDS);
          assertNotNull(name, each.getKey() + " never comes");
        } while (!name.equals(each.getKey()));
      }
    }
  }

  @Test
  void whatMakesNoSenseIsRefusedInWords() {
    var refused = assertThrows(KubernetesClientException.class, () -> portico.fault(Fault.cutWatch().verbs("get")));
    assertTrue(refused.getMessage().contains("applies only to watch"), refused.getMessage());
  }

  @Test
  void aServerLeavesNothingAndOneThatDoesNotStartSaysSo() throws IOException {
    var other = new Portico().start();
    assertTrue(other.kubeconfig().exists());
    other.close();
    assertFalse(other.kubeconfig().getParentFile().exists());
    var ended = assertThrows(IOException.class, () -> new Portico("--no-such-flag").start());
    assertTrue(ended.getMessage().contains("exited with 2"), ended.getMessage());
  }
}
