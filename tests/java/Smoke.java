// The Java client, unmodified, as its users use it: CRUD, patches, watches, informers, errors.
//
// Usage: Smoke KUBECONFIG. Fails with an exception; prints one line on success.

import io.kubernetes.client.custom.V1Patch;
import io.kubernetes.client.informer.SharedInformerFactory;
import io.kubernetes.client.openapi.ApiClient;
import io.kubernetes.client.openapi.ApiException;
import io.kubernetes.client.openapi.apis.AppsV1Api;
import io.kubernetes.client.openapi.apis.CoreV1Api;
import io.kubernetes.client.openapi.models.V1ConfigMap;
import io.kubernetes.client.openapi.models.V1ConfigMapList;
import io.kubernetes.client.openapi.models.V1Container;
import io.kubernetes.client.openapi.models.V1Deployment;
import io.kubernetes.client.openapi.models.V1DeploymentSpec;
import io.kubernetes.client.openapi.models.V1LabelSelector;
import io.kubernetes.client.openapi.models.V1Namespace;
import io.kubernetes.client.openapi.models.V1ObjectMeta;
import io.kubernetes.client.openapi.models.V1PodSpec;
import io.kubernetes.client.openapi.models.V1PodTemplateSpec;
import io.kubernetes.client.openapi.models.V1Secret;
import io.kubernetes.client.util.CallGeneratorParams;
import io.kubernetes.client.util.Config;
import io.kubernetes.client.util.PatchUtils;
import io.kubernetes.client.util.Watch;
import com.google.gson.reflect.TypeToken;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;

public class Smoke {
    static final String NAMESPACE = "java";

    interface Call {
        void make() throws ApiException;
    }

    static void that(boolean holds, Object what) {
        if (!holds) throw new AssertionError(what);
    }

    static void refused(int code, Call call) {
        try {
            call.make();
        } catch (ApiException refusal) {
            that(refusal.getCode() == code, refusal);
            return;
        }
        throw new AssertionError("accepted, although " + code + " was due");
    }

    static V1ObjectMeta named(String name) {
        return new V1ObjectMeta().name(name);
    }

    static void configMaps(CoreV1Api core) throws ApiException {
        core.createNamespace(new V1Namespace().metadata(named(NAMESPACE))).execute();
        V1ConfigMap body = new V1ConfigMap().metadata(named("a").putLabelsItem("x", "1")).putDataItem("k", "v");
        V1ConfigMap made = core.createNamespacedConfigMap(NAMESPACE, body).execute();
        that(made.getMetadata().getUid() != null, made);
        V1ConfigMap stale = core.readNamespacedConfigMap("a", NAMESPACE).execute();
        core.replaceNamespacedConfigMap("a", NAMESPACE, made.data(Map.of("k", "w"))).execute();
        refused(409, () -> core.replaceNamespacedConfigMap("a", NAMESPACE, stale).execute());
        refused(404, () -> core.readNamespacedConfigMap("missing", NAMESPACE).execute());
        V1ConfigMapList listed = core.listNamespacedConfigMap(NAMESPACE).labelSelector("x=1").execute();
        that(listed.getItems().size() == 1 && listed.getItems().get(0).getData().get("k").equals("w"), listed);
    }

    static V1Deployment deployment() {
        Map<String, String> labels = Map.of("app", "web");
        V1PodSpec pod = new V1PodSpec().addContainersItem(new V1Container().name("c").image("nginx"));
        V1PodTemplateSpec template = new V1PodTemplateSpec().metadata(new V1ObjectMeta().labels(labels)).spec(pod);
        V1DeploymentSpec spec = new V1DeploymentSpec().selector(new V1LabelSelector().matchLabels(labels)).template(template);
        return new V1Deployment().apiVersion("apps/v1").kind("Deployment").metadata(named("web")).spec(spec.replicas(2));
    }

    static void workloads(ApiClient client) throws ApiException {
        AppsV1Api apps = new AppsV1Api(client);
        V1Deployment made = apps.createNamespacedDeployment(NAMESPACE, deployment()).execute();
        that("RollingUpdate".equals(made.getSpec().getStrategy().getType()), made);
        V1Patch scale = new V1Patch("{\"spec\":{\"replicas\":5}}");
        V1Deployment scaled = PatchUtils.patch(V1Deployment.class,
            () -> apps.patchNamespacedDeployment("web", NAMESPACE, scale).buildCall(null),
            V1Patch.PATCH_FORMAT_STRATEGIC_MERGE_PATCH, client);
        that(scaled.getSpec().getReplicas() == 5, scaled);
        V1Patch whole = new V1Patch(client.getJSON().serialize(deployment()));
        V1Deployment applied = PatchUtils.patch(V1Deployment.class,
            () -> apps.patchNamespacedDeployment("web", NAMESPACE, whole).fieldManager("smoke").force(true).buildCall(null),
            V1Patch.PATCH_FORMAT_APPLY_YAML, client);
        that(applied.getSpec().getReplicas() == 2, applied);
        apps.deleteNamespacedDeployment("web", NAMESPACE).propagationPolicy("Background").execute();
    }

    static void watching(CoreV1Api core, ApiClient client) throws Exception {
        String revision = core.listNamespacedSecret(NAMESPACE).execute().getMetadata().getResourceVersion();
        V1Secret body = new V1Secret().metadata(named("s")).putStringDataItem("p", "q");
        core.createNamespacedSecret(NAMESPACE, body).execute();
        core.deleteNamespacedSecret("s", NAMESPACE).execute();
        List<String> seen = new ArrayList<>();
        okhttp3.Call call = core.listNamespacedSecret(NAMESPACE).resourceVersion(revision).timeoutSeconds(2).watch(true).buildCall(null);
        try (Watch<V1Secret> events = Watch.createWatch(client, call, new TypeToken<Watch.Response<V1Secret>>() {}.getType())) {
            events.forEach(event -> seen.add(event.type));
        }
        that(seen.equals(List.of("ADDED", "DELETED")), seen);
    }

    static void informing(CoreV1Api core, ApiClient client) throws Exception {
        SharedInformerFactory factory = new SharedInformerFactory(client);
        BlockingQueue<String> events = new LinkedBlockingQueue<>();
        factory.sharedIndexInformerFor((CallGeneratorParams asked) -> core.listNamespacedConfigMap(NAMESPACE)
                .resourceVersion(asked.resourceVersion).timeoutSeconds(asked.timeoutSeconds).watch(asked.watch).buildCall(null),
            V1ConfigMap.class, V1ConfigMapList.class)
            .addEventHandler(new io.kubernetes.client.informer.ResourceEventHandler<V1ConfigMap>() {
                public void onAdd(V1ConfigMap map) {
                    events.add(map.getMetadata().getName());
                }

                public void onUpdate(V1ConfigMap before, V1ConfigMap after) {}

                public void onDelete(V1ConfigMap last, boolean unknown) {}
            });
        factory.startAllRegisteredInformers();
        awaitEvent(events, "a");
        core.createNamespacedConfigMap(NAMESPACE, new V1ConfigMap().metadata(named("b"))).execute();
        awaitEvent(events, "b");
        factory.stopAllRegisteredInformers();
    }

    /** Others may be there, too. */
    static void awaitEvent(BlockingQueue<String> events, String name) throws InterruptedException {
        String each;
        do {
            each = events.poll(30, TimeUnit.SECONDS);
            that(each != null, "the informer did not report " + name);
        } while (!each.equals(name));
    }

    public static void main(String[] arguments) throws Exception {
        ApiClient client = Config.fromConfig(arguments[0]);
        client.setReadTimeout(0); // required by informers, whose watches are idle for long
        CoreV1Api core = new CoreV1Api(client);
        configMaps(core);
        workloads(client);
        watching(core, client);
        informing(core, client);
        core.deleteNamespace(NAMESPACE).execute();
        System.out.println("the Java client is at home");
        System.exit(0);
    }
}
