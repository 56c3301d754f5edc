package controller

import (
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	webappv1 "portico.example.com/guestbook/api/v1"
)

const patience = 10 * time.Second

// newNamespace creates a namespace for a test: envtest never empties namespaces.
func newNamespace() string {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}
	Expect(k8sClient.Create(ctx, namespace)).To(Succeed())
	return namespace.Name
}

func newBook(namespace, name string) *webappv1.Guestbook {
	return &webappv1.Guestbook{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       webappv1.GuestbookSpec{Title: "Guests", Pages: 3},
	}
}

func isReady(book *webappv1.Guestbook) func(Gomega) {
	return func(g Gomega) {
		g.Expect(k8sClient.Get(ctx, client.ObjectKeyFromObject(book), book)).To(Succeed())
		ready := meta.FindStatusCondition(book.Status.Conditions, "Ready")
		g.Expect(ready).NotTo(BeNil())
		g.Expect(ready.ObservedGeneration).To(Equal(book.Generation))
	}
}

var _ = Describe("Guestbook controller", func() {
	It("makes a ConfigMap that the Guestbook owns, and says so", func() {
		book := newBook(newNamespace(), "one")
		Expect(k8sClient.Create(ctx, book)).To(Succeed())
		Eventually(isReady(book)).WithTimeout(patience).WithPolling(10 * time.Millisecond).Should(Succeed())
		Expect(book.Status.Pages).To(BeEquivalentTo(3))
		Expect(book.Finalizers).To(ConsistOf(Finalizer))
		var config corev1.ConfigMap
		Expect(k8sClient.Get(ctx, client.ObjectKeyFromObject(book), &config)).To(Succeed())
		Expect(config.Data).To(HaveKeyWithValue("pages", "3"))
		Expect(metav1.IsControlledBy(&config, book)).To(BeTrue())
	})

	It("follows changes, also of what it owns", func() {
		book := newBook(newNamespace(), "two")
		Expect(k8sClient.Create(ctx, book)).To(Succeed())
		Eventually(isReady(book)).WithTimeout(patience).WithPolling(10 * time.Millisecond).Should(Succeed())
		patch := client.MergeFrom(book.DeepCopyObject().(client.Object))
		book.Spec.Pages = 5
		Expect(k8sClient.Patch(ctx, book, patch)).To(Succeed())
		var config corev1.ConfigMap
		pages := func() (string, error) {
			err := k8sClient.Get(ctx, client.ObjectKeyFromObject(book), &config)
			return config.Data["pages"], client.IgnoreNotFound(err)
		}
		Eventually(pages).WithTimeout(patience).WithPolling(10 * time.Millisecond).Should(Equal("5"))
		Expect(k8sClient.Delete(ctx, &config)).To(Succeed())
		Eventually(func() error {
			return k8sClient.Get(ctx, client.ObjectKeyFromObject(book), &config)
		}).WithTimeout(patience).WithPolling(10 * time.Millisecond).Should(Succeed())
	})

	It("lets a Guestbook go when its ConfigMap is gone", func() {
		book := newBook(newNamespace(), "three")
		Expect(k8sClient.Create(ctx, book)).To(Succeed())
		Eventually(isReady(book)).WithTimeout(patience).WithPolling(10 * time.Millisecond).Should(Succeed())
		Expect(k8sClient.Delete(ctx, book)).To(Succeed())
		Eventually(func() bool {
			return apierrors.IsNotFound(k8sClient.Get(ctx, client.ObjectKeyFromObject(book), book))
		}).WithTimeout(patience).WithPolling(10 * time.Millisecond).Should(BeTrue())
		err := k8sClient.Get(ctx, client.ObjectKeyFromObject(book), &corev1.ConfigMap{})
		Expect(apierrors.IsNotFound(err)).To(BeTrue())
	})

	It("serves many at a time", func() {
		namespace := newNamespace()
		books := make([]*webappv1.Guestbook, 50)
		for i := range books {
			books[i] = newBook(namespace, fmt.Sprintf("book-%d", i))
			Expect(k8sClient.Create(ctx, books[i])).To(Succeed())
		}
		for _, book := range books {
			Eventually(isReady(book)).WithTimeout(patience).WithPolling(10 * time.Millisecond).Should(Succeed())
		}
		var configs corev1.ConfigMapList
		Expect(k8sClient.List(ctx, &configs, client.InNamespace(namespace))).To(Succeed())
		Expect(configs.Items).To(HaveLen(len(books)))
	})

	It("has what kube-controller-manager would do left undone", func() {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "stays-"}}
		Expect(k8sClient.Create(ctx, namespace)).To(Succeed())
		Expect(k8sClient.Delete(ctx, namespace)).To(Succeed())
		Consistently(func() (corev1.NamespacePhase, error) {
			err := k8sClient.Get(ctx, client.ObjectKeyFromObject(namespace), namespace)
			return namespace.Status.Phase, err
		}).WithTimeout(300 * time.Millisecond).Should(Equal(corev1.NamespaceTerminating))
	})
})
