package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	apps "k8s.io/api/apps/v1"
	batch "k8s.io/api/batch/v1"
	coordination "k8s.io/api/coordination/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	rbac "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// client contains the methods of every typed client of client-go.
type client[T any] interface {
	Create(context.Context, *T, meta.CreateOptions) (*T, error)
	Get(context.Context, string, meta.GetOptions) (*T, error)
	Update(context.Context, *T, meta.UpdateOptions) (*T, error)
	Delete(context.Context, string, meta.DeleteOptions) error
}

func tenKinds(ctx context.Context, config *rest.Config) error {
	k, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	factory := informers.NewSharedInformerFactoryWithOptions(k, 0, informers.WithNamespace("default"))
	name := meta.ObjectMeta{Name: "typed"}
	i := factory
	kinds := []func() error{
		exercise(ctx, k.CoreV1().ConfigMaps("default"), i.Core().V1().ConfigMaps().Informer(),
			&core.ConfigMap{ObjectMeta: name, Data: map[string]string{"a": "b"}, BinaryData: map[string][]byte{"c": {0, 255}}}),
		exercise(ctx, k.CoreV1().Secrets("default"), i.Core().V1().Secrets().Informer(),
			&core.Secret{ObjectMeta: name, StringData: map[string]string{"a": "b"}}),
		exercise(ctx, k.CoreV1().Services("default"), i.Core().V1().Services().Informer(),
			&core.Service{ObjectMeta: name, Spec: core.ServiceSpec{Ports: []core.ServicePort{{Port: 80}}}}),
		exercise(ctx, k.CoreV1().ServiceAccounts("default"), i.Core().V1().ServiceAccounts().Informer(),
			&core.ServiceAccount{ObjectMeta: name}),
		exercise(ctx, k.CoreV1().Endpoints("default"), i.Core().V1().Endpoints().Informer(),
			&core.Endpoints{ObjectMeta: name}), //nolint:staticcheck // deprecated, and served
		exercise(ctx, k.AppsV1().Deployments("default"), i.Apps().V1().Deployments().Informer(),
			&apps.Deployment{ObjectMeta: name, Spec: apps.DeploymentSpec{Selector: selector(), Template: template()}}),
		exercise(ctx, k.BatchV1().Jobs("default"), i.Batch().V1().Jobs().Informer(),
			&batch.Job{ObjectMeta: name, Spec: batch.JobSpec{Template: jobTemplate()}}),
		exercise(ctx, k.RbacV1().Roles("default"), i.Rbac().V1().Roles().Informer(),
			&rbac.Role{ObjectMeta: name, Rules: []rbac.PolicyRule{{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"pods"}}}}),
		exercise(ctx, k.CoordinationV1().Leases("default"), i.Coordination().V1().Leases().Informer(),
			&coordination.Lease{ObjectMeta: name, Spec: coordination.LeaseSpec{RenewTime: &meta.MicroTime{Time: time.Now()}}}),
		exercise(ctx, k.NetworkingV1().NetworkPolicies("default"), i.Networking().V1().NetworkPolicies().Informer(),
			&networking.NetworkPolicy{ObjectMeta: name, Spec: networking.NetworkPolicySpec{PolicyTypes: []networking.PolicyType{"Ingress"}}}),
	}
	stop := make(chan struct{})
	defer close(stop)
	factory.Start(stop)
	for kind, synced := range factory.WaitForCacheSync(ctx.Done()) {
		if !synced {
			return fmt.Errorf("the informer of %s does not get its list", kind)
		}
	}
	var all error
	for _, run := range kinds {
		all = errors.Join(all, run())
	}
	return all
}

// exercise returns a check of create, read, update and delete of one kind, each observed by an informer.
func exercise[T any, P interface {
	*T
	meta.Object
}](ctx context.Context, c client[T], informer cache.SharedIndexInformer, object P) func() error {
	events := make(chan string, 100)
	report := func(event string, object any) {
		if last, ok := object.(cache.DeletedFinalStateUnknown); ok {
			object = last.Obj
		}
		if object.(meta.Object).GetName() == "typed" {
			events <- event
		}
	}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { report("added", o) },
		UpdateFunc: func(_, o any) { report("updated", o) },
		DeleteFunc: func(o any) { report("deleted", o) },
	})
	await := func(event string) error {
		for {
			select {
			case got := <-events:
				if got == event {
					return nil
				}
			case <-time.After(10 * time.Second):
				return fmt.Errorf("%T: the informer does not report that it was %s", object, event)
			}
		}
	}
	return func() error {
		if err != nil {
			return err
		}
		created, err := c.Create(ctx, object, meta.CreateOptions{FieldManager: "tests"})
		if err != nil {
			return fmt.Errorf("create %T: %w", object, err)
		}
		if err := await("added"); err != nil {
			return err
		}
		got, err := c.Get(ctx, "typed", meta.GetOptions{})
		if err != nil {
			return fmt.Errorf("get %T: %w", object, err)
		}
		if P(got).GetResourceVersion() == P(created).GetResourceVersion() && !equality.Semantic.DeepEqual(got, created) {
			return fmt.Errorf("%T: read %+v, created %+v", object, got, created)
		}
		P(got).SetLabels(map[string]string{"updated": "yes"})
		if _, err := c.Update(ctx, got, meta.UpdateOptions{}); err != nil {
			return fmt.Errorf("update %T: %w", object, err)
		}
		if err := await("updated"); err != nil {
			return err
		}
		kept, _, err := informer.GetStore().GetByKey("default/typed")
		if err != nil || kept.(meta.Object).GetLabels()["updated"] != "yes" {
			return fmt.Errorf("%T: the informer keeps %+v, %w", object, kept, err)
		}
		uid, policy := P(created).GetUID(), meta.DeletePropagationBackground
		options := meta.DeleteOptions{Preconditions: &meta.Preconditions{UID: &uid}, PropagationPolicy: &policy}
		if err := c.Delete(ctx, "typed", options); err != nil {
			return fmt.Errorf("delete %T: %w", object, err)
		}
		return await("deleted")
	}
}

func selector() *meta.LabelSelector {
	return &meta.LabelSelector{MatchLabels: map[string]string{"app": "a"}}
}

func template() core.PodTemplateSpec {
	return core.PodTemplateSpec{
		ObjectMeta: meta.ObjectMeta{Labels: map[string]string{"app": "a"}},
		Spec:       core.PodSpec{Containers: []core.Container{{Name: "c", Image: "i"}}},
	}
}

func jobTemplate() core.PodTemplateSpec {
	pod := template()
	pod.Spec.RestartPolicy = core.RestartPolicyNever
	return pod
}
