// fabric8's client, unmodified, as its users use it: CRUD, patches, server-side apply, definitions, watches, informers, errors.
//
// Usage: Fabric8 KUBECONFIG. Fails with an exception; prints one line on success.

import io.fabric8.kubernetes.api.model.ConfigMap;
import io.fabric8.kubernetes.api.model.ConfigMapBuilder;
import io.fabric8.kubernetes.api.model.GenericKubernetesResource;
import io.fabric8.kubernetes.api.model.NamespaceBuilder;
import io.fabric8.kubernetes.api.model.ObjectMetaBuilder;
import io.fabric8.kubernetes.api.model.Secret;
import io.fabric8.kubernetes.api.model.SecretBuilder;
import io.fabric8.kubernetes.api.model.apiextensions.v1.CustomResourceDefinition;
import io.fabric8.kubernetes.api.model.apps.Deployment;
import io.fabric8.kubernetes.api.model.apps.DeploymentBuilder;
import io.fabric8.kubernetes.api.model.autoscaling.v1.ScaleBuilder;
import io.fabric8.kubernetes.client.Config;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.KubernetesClientBuilder;
import io.fabric8.kubernetes.client.KubernetesClientException;
import io.fabric8.kubernetes.client.Watcher;
import io.fabric8.kubernetes.client.WatcherException;
import io.fabric8.kubernetes.client.dsl.base.PatchContext;
import io.fabric8.kubernetes.client.dsl.base.PatchType;
import io.fabric8.kubernetes.client.dsl.base.ResourceDefinitionContext;
import io.fabric8.kubernetes.client.informers.ResourceEventHandler;
import java.io.File;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;

public class Fabric8 {
    static final String NAMESPACE = "fabric8";
    static final int PATIENCE = 60;

    static final String DEFINITION = """
        apiVersion: apiextensions.k8s.io/v1
        kind: CustomResourceDefinition
        metadata: {name: tomes.example.com}
        spec:
          group: example.com
          scope: Namespaced
          names: {plural: tomes, kind: Tome}
          versions:
            - name: v1
              served: true
              storage: true
              subresources: {status: {}}
              schema:
                openAPIV3Schema:
                  type: object
                  properties:
                    spec: {type: object, properties: {pages: {type: integer, minimum: 1}}}
                    status: {type: object, properties: {read: {type: integer}}}
        """;

    static void that(boolean holds, Object what) {
        if (!holds) throw new AssertionError(what);
    }

    static void refused(int code, Runnable call) {
        try {
            call.run();
        } catch (KubernetesClientException refusal) {
            that(refusal.getCode() == code, refusal);
            return;
        }
        throw new AssertionError("accepted, although " + code + " was due");
    }

    static ConfigMapBuilder named(String name) {
        return new ConfigMapBuilder().withNewMetadata().withName(name).addToLabels("x", "1").endMetadata();
    }

    static void configMaps(KubernetesClient client) {
        client.resource(new NamespaceBuilder().withNewMetadata().withName(NAMESPACE).endMetadata().build()).create();
        var maps = client.configMaps().inNamespace(NAMESPACE);
        ConfigMap made = maps.resource(named("a").addToData("k", "v").build()).create();
        that(made.getMetadata().getUid() != null, made);
        // edit sends a JSON patch.
        ConfigMap edited = maps.withName("a").edit(map -> new ConfigMapBuilder(map).addToData("k", "w").build());
        that(edited.getData().equals(Map.of("k", "w")), edited);
        refused(409, () -> maps.resource(new ConfigMapBuilder(made).addToData("k", "x").build()).lockResourceVersion().update());
        refused(409, () -> maps.resource(named("a").build()).create());
        that(maps.withName("missing").get() == null, "what is missing is null");
        that(maps.withLabel("x", "1").list().getItems().size() == 1, "by label");
    }

    static void workloads(KubernetesClient client) {
        Deployment body = new DeploymentBuilder().withNewMetadata().withName("web").endMetadata().withNewSpec().withReplicas(2)
            .withNewSelector().addToMatchLabels("app", "web").endSelector()
            .withNewTemplate().withNewMetadata().addToLabels("app", "web").endMetadata()
            .withNewSpec().addNewContainer().withName("c").withImage("nginx").endContainer().endSpec().endTemplate()
            .endSpec().build();
        var web = client.apps().deployments().inNamespace(NAMESPACE).resource(body);
        that("RollingUpdate".equals(web.create().getSpec().getStrategy().getType()), "defaults");
        var named = client.apps().deployments().inNamespace(NAMESPACE).withName("web");
        that(named.scale(new ScaleBuilder().withNewMetadata().withName("web").endMetadata()
            .withNewSpec().withReplicas(5).endSpec().build()).getSpec().getReplicas() == 5, "scaled");
        Deployment patched = named.patch(PatchContext.of(PatchType.STRATEGIC_MERGE), "{\"spec\":{\"replicas\":4}}");
        that(patched.getSpec().getReplicas() == 4, patched);
        refused(409, () -> web.fieldManager("smoke").serverSideApply());
        that(web.fieldManager("smoke").forceConflicts().serverSideApply().getSpec().getReplicas() == 2, "applied");
        named.delete();
    }

    static void definitions(KubernetesClient client) {
        var definition = client.getKubernetesSerialization().unmarshal(DEFINITION, CustomResourceDefinition.class);
        client.resource(definition).create();
        client.resource(definition).waitUntilCondition(now -> now != null && now.getStatus() != null && now.getStatus().getConditions().stream()
            .anyMatch(condition -> condition.getType().equals("Established") && condition.getStatus().equals("True")), PATIENCE, TimeUnit.SECONDS);
        var kind = new ResourceDefinitionContext.Builder().withGroup("example.com").withVersion("v1").withKind("Tome").withPlural("tomes")
            .withNamespaced(true).build();
        var tomes = client.genericKubernetesResources(kind).inNamespace(NAMESPACE);
        GenericKubernetesResource tome = tome(3);
        tomes.resource(tome).create();
        refused(422, () -> tomes.withName("doors").patch(PatchContext.of(PatchType.JSON_MERGE), "{\"spec\":{\"pages\":0}}"));
        tome.setAdditionalProperty("status", Map.of("read", 1));
        GenericKubernetesResource read = tomes.resource(tome).patchStatus();
        that(read.get("status", "read").equals(1), read);
        that(tomes.list().getItems().size() == 1, "one Tome");
    }

    static GenericKubernetesResource tome(int pages) {
        GenericKubernetesResource tome = new GenericKubernetesResource();
        tome.setApiVersion("example.com/v1");
        tome.setKind("Tome");
        tome.setMetadata(new ObjectMetaBuilder().withName("doors").build());
        tome.setAdditionalProperty("spec", Map.of("pages", pages));
        return tome;
    }

    static void awaitEvents(BlockingQueue<String> events, String... wanted) throws InterruptedException {
        for (String each : wanted) {
            String event = events.poll(PATIENCE, TimeUnit.SECONDS);
            that(each.equals(event), event + " instead of " + each);
        }
    }

    static void watching(KubernetesClient client) throws Exception {
        BlockingQueue<String> events = new LinkedBlockingQueue<>();
        var secrets = client.secrets().inNamespace(NAMESPACE);
        try (var watch = secrets.watch(new Watcher<Secret>() {
            @Override public void eventReceived(Action action, Secret secret) { events.add(action.name()); }
            @Override public void onClose(WatcherException why) {}
        })) {
            secrets.resource(new SecretBuilder().withNewMetadata().withName("s").endMetadata().addToStringData("p", "q").build()).create();
            awaitEvents(events, "ADDED");
            secrets.withName("s").edit(secret -> new SecretBuilder(secret).addToData("r", "cw==").build());
            awaitEvents(events, "MODIFIED");
            secrets.withName("s").delete();
            awaitEvents(events, "DELETED");
        }
    }

    static void informing(KubernetesClient client) throws Exception {
        BlockingQueue<String> events = new LinkedBlockingQueue<>();
        var maps = client.configMaps().inNamespace(NAMESPACE);
        try (var informer = maps.inform(new ResourceEventHandler<ConfigMap>() {
            @Override public void onAdd(ConfigMap map) { events.add("+" + map.getMetadata().getName()); }
            @Override public void onUpdate(ConfigMap before, ConfigMap after) { events.add("=" + after.getMetadata().getName()); }
            @Override public void onDelete(ConfigMap last, boolean unknown) { events.add("-" + last.getMetadata().getName()); }
        })) {
            awaitEvents(events, "+a");
            maps.resource(named("b").build()).create();
            awaitEvents(events, "+b");
            maps.withName("b").edit(map -> new ConfigMapBuilder(map).addToData("k", "v").build());
            awaitEvents(events, "=b");
            maps.withName("b").delete();
            awaitEvents(events, "-b");
            that(informer.getStore().list().size() == 1, "what informers hold");
        }
    }

    public static void main(String[] arguments) throws Exception {
        try (var client = new KubernetesClientBuilder().withConfig(Config.fromKubeconfig(new File(arguments[0]))).build()) {
            configMaps(client);
            workloads(client);
            definitions(client);
            watching(client);
            informing(client);
            client.namespaces().withName(NAMESPACE).delete();
        }
        System.out.println("fabric8's client is at home");
        System.exit(0);
    }
}
