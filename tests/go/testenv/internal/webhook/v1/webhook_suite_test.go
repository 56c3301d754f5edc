package v1

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	webappv1 "portico.example.com/guestbook/api/v1"
)

var (
	ctx       context.Context
	cancel    context.CancelFunc
	testEnv   *envtest.Environment
	k8sClient client.Client
)

func TestWebhooks(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Webhook Suite")
}

var _ = BeforeSuite(func() {
	logf.SetLogger(zap.New(zap.WriteTo(GinkgoWriter), zap.UseDevMode(true)))
	ctx, cancel = context.WithCancel(context.Background())
	Expect(webappv1.AddToScheme(scheme.Scheme)).To(Succeed())
	testEnv = &envtest.Environment{
		CRDDirectoryPaths:     []string{filepath.Join("..", "..", "..", "config", "crd", "bases")},
		ErrorIfCRDPathMissing: true,
		WebhookInstallOptions: envtest.WebhookInstallOptions{
			Paths: []string{filepath.Join("..", "..", "..", "config", "webhook")},
		},
	}
	// Flags that users add, one of them repeated.
	testEnv.ControlPlane.GetAPIServer().Configure().
		Append("feature-gates", "MutatingAdmissionPolicy=true").
		Append("feature-gates", "APIServerIdentity=true").
		Set("request-timeout", "30s").
		Set("v", "2")
	cfg, err := testEnv.Start()
	Expect(err).NotTo(HaveOccurred())
	k8sClient, err = client.New(cfg, client.Options{Scheme: scheme.Scheme})
	Expect(err).NotTo(HaveOccurred())
	options := &testEnv.WebhookInstallOptions
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{
		Scheme: scheme.Scheme,
		WebhookServer: webhook.NewServer(webhook.Options{
			Host: options.LocalServingHost, Port: options.LocalServingPort, CertDir: options.LocalServingCertDir,
		}),
		Metrics: metricsserver.Options{BindAddress: "0"},
	})
	Expect(err).NotTo(HaveOccurred())
	Expect(SetupGuestbookWebhookWithManager(mgr)).To(Succeed())
	go func() {
		defer GinkgoRecover()
		Expect(mgr.Start(ctx)).To(Succeed())
	}()
	address := fmt.Sprintf("%s:%d", options.LocalServingHost, options.LocalServingPort)
	Eventually(func() error {
		conn, err := tls.DialWithDialer(&net.Dialer{Timeout: time.Second}, "tcp", address, &tls.Config{InsecureSkipVerify: true})
		if err != nil {
			return err
		}
		return conn.Close()
	}).WithTimeout(10 * time.Second).WithPolling(10 * time.Millisecond).Should(Succeed())
})

var _ = AfterSuite(func() {
	cancel()
	Expect(testEnv.Stop()).To(Succeed())
})

var _ = Describe("Guestbook webhooks", func() {
	book := func(name, title string) *webappv1.Guestbook {
		return &webappv1.Guestbook{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
			Spec:       webappv1.GuestbookSpec{Title: title},
		}
	}

	It("default what nobody says", func() {
		one := book("one", "Guests")
		Expect(k8sClient.Create(ctx, one)).To(Succeed())
		Expect(one.Spec.Pages).To(BeEquivalentTo(1))
	})

	It("refuse what may not be", func() {
		Expect(k8sClient.Create(ctx, book("two", ""))).To(MatchError(ContainSubstring("a title is needed")))
		three := book("three", "Guests")
		Expect(k8sClient.Create(ctx, three)).To(Succeed())
		three.Spec.Title = "Hosts"
		Expect(k8sClient.Update(ctx, three)).To(MatchError(ContainSubstring(`the title "Guests" stays`)))
	})

	It("let users be distinguished", func() {
		user, err := testEnv.AddUser(envtest.User{Name: "alice", Groups: []string{"dev"}}, nil)
		Expect(err).NotTo(HaveOccurred())
		alice, err := client.New(user.Config(), client.Options{Scheme: scheme.Scheme})
		Expect(err).NotTo(HaveOccurred())
		Expect(alice.Create(ctx, book("four", "Guests"))).To(MatchError(ContainSubstring(`User "alice" cannot create`)))
		kubectl, err := user.Kubectl()
		Expect(err).NotTo(HaveOccurred())
		Expect(kubectl).NotTo(BeNil())
	})
})
