package portico

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
)

func named(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func TestRequestsAreRefusedLateOrLost(t *testing.T) {
	server := Start(t)
	api := kubernetes.NewForConfigOrDie(server.Config()).CoreV1().ConfigMaps("default")
	ctx := context.Background()
	made, err := api.Create(ctx, named("a"), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	conflict := server.Fault(Status(409), For{Resource: "configmaps", Verbs: []string{"update"}, Times: 1})
	if _, err := api.Update(ctx, made, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
		t.Errorf("no conflict: %v", err)
	}
	if _, err := api.Update(ctx, made, metav1.UpdateOptions{}); err != nil || conflict.Remove() != 1 {
		t.Errorf("more than one conflict: %v", err)
	}
	late := server.Fault(Latency(200*time.Millisecond), For{Resource: "configmaps", Times: 1})
	began := time.Now()
	if _, err := api.Get(ctx, "a", metav1.GetOptions{}); err != nil || time.Since(began) < 200*time.Millisecond {
		t.Errorf("not late: %v", err)
	}
	late.Remove()
	server.Fault(DropAnswer(), For{Resource: "configmaps", Verbs: []string{"create"}})
	if _, err := api.Create(ctx, named("lost"), metav1.CreateOptions{}); err == nil || apierrors.ReasonForError(err) != metav1.StatusReasonUnknown {
		t.Errorf("an answer: %v", err)
	}
	if _, err := api.Get(ctx, "lost", metav1.GetOptions{}); err != nil {
		t.Errorf("the write was lost, and not its answer: %v", err)
	}
	if _, err := server.SetFault(CutWatch(), For{Verbs: []string{"get"}}); err == nil || !strings.Contains(err.Error(), "applies only to watch") {
		t.Errorf("what makes no sense is refused: %v", err)
	}
	if err := server.ClearFaults(); err != nil {
		t.Error(err)
	}
}

func TestReadsAreStale(t *testing.T) {
	server := Start(t)
	config := server.Config()
	// As controller-runtime asks for built-in kinds.
	config.ContentType, config.AcceptContentTypes = "application/vnd.kubernetes.protobuf", "application/vnd.kubernetes.protobuf,application/json"
	api := kubernetes.NewForConfigOrDie(config).CoreV1().ConfigMaps("default")
	ctx := context.Background()
	if _, err := api.Create(ctx, named("a"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	stale := server.Fault(StaleReads(), For{Resource: "configmaps"})
	if _, err := api.Create(ctx, named("b"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if old, err := api.Get(ctx, "a", metav1.GetOptions{}); err != nil || old.Name != "a" || old.UID == "" {
		t.Errorf("%v: %v", old, err)
	}
	if _, err := api.Get(ctx, "b", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("not stale: %v", err)
	}
	if stale.Remove() != 2 {
		t.Error("it happened to two reads")
	}
	if _, err := api.Get(ctx, "b", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
}

func TestAnInformerGoesOnAfterItsWatchesEnded(t *testing.T) {
	server := Start(t)
	for _, accept := range []string{"application/json", "application/vnd.kubernetes.protobuf"} {
		config := server.Config()
		config.ContentType = accept
		clients := kubernetes.NewForConfigOrDie(config)
		api, ctx := clients.CoreV1().ConfigMaps("default"), t.Context()
		factory := informers.NewSharedInformerFactory(clients, 0)
		lister := factory.Core().V1().ConfigMaps().Lister().ConfigMaps("default")
		factory.Start(ctx.Done())
		factory.WaitForCacheSync(ctx.Done())
		prefix := strings.ReplaceAll(filepath.Base(accept), ".", "-")
		for name, fault := range map[string]Fault{
			"cut": CutWatch(), "clean": CutWatch().With("clean", true), "expired": ExpireWatch(), "events": ExpireWatch().With("afterEvents", 1),
		} {
			set := server.Fault(fault, For{Resource: "configmaps", Times: 1})
			for _, suffix := range []string{"", "-after"} {
				if _, err := api.Create(ctx, named(prefix+"-"+name+suffix), metav1.CreateOptions{}); err != nil {
					t.Fatal(err)
				}
				known := func(context.Context) (bool, error) {
					_, err := lister.Get(prefix + "-" + name + suffix)
					return err == nil, nil
				}
				if err := wait.PollUntilContextTimeout(ctx, 5*time.Millisecond, timeout, true, known); err != nil {
					t.Fatalf("%s%s never comes: %v", name, suffix, err)
				}
			}
			if hits := set.Remove(); hits != 1 {
				t.Errorf("%s happened %d times", name, hits)
			}
		}
	}
}

func TestAServerLeavesNothing(t *testing.T) {
	server, err := New()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(server.Kubeconfig()); err != nil {
		t.Error(err)
	}
	if err := server.Stop(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Dir(server.Kubeconfig())); !os.IsNotExist(err) {
		t.Errorf("the data are still there: %v", err)
	}
	if _, err := New("--no-such-flag"); err == nil {
		t.Error("it starts")
	}
}
