// Package controller creates a ConfigMap for each Guestbook, and reports it in the status.
package controller

import (
	"context"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	webappv1 "portico.example.com/guestbook/api/v1"
)

// Finalizer is present until the Guestbook's ConfigMap is deleted.
const Finalizer = "webapp.example.com/config-map"

// GuestbookReconciler reconciles Guestbooks.
type GuestbookReconciler struct {
	client.Client
}

// Reconcile updates the ConfigMap, the status and the finalizer.
func (r *GuestbookReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var book webappv1.Guestbook
	if err := r.Get(ctx, req.NamespacedName, &book); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: book.Name, Namespace: book.Namespace}}
	if !book.DeletionTimestamp.IsZero() {
		if err := r.Delete(ctx, config); client.IgnoreNotFound(err) != nil {
			return ctrl.Result{}, err
		}
		if controllerutil.RemoveFinalizer(&book, Finalizer) {
			return ctrl.Result{}, r.Update(ctx, &book)
		}
		return ctrl.Result{}, nil
	}
	if controllerutil.AddFinalizer(&book, Finalizer) {
		if err := r.Update(ctx, &book); err != nil {
			return ctrl.Result{}, err
		}
	}
	_, err := controllerutil.CreateOrUpdate(ctx, r.Client, config, func() error {
		config.Data = map[string]string{"title": book.Spec.Title, "pages": strconv.Itoa(int(book.Spec.Pages))}
		return controllerutil.SetControllerReference(&book, config, r.Scheme())
	})
	if err != nil {
		return ctrl.Result{}, err
	}
	book.Status.Pages = book.Spec.Pages
	meta.SetStatusCondition(&book.Status.Conditions, metav1.Condition{
		Type: "Ready", Status: metav1.ConditionTrue, Reason: "Written", ObservedGeneration: book.Generation,
	})
	return ctrl.Result{}, r.Status().Update(ctx, &book)
}

// SetupWithManager registers the controller.
func (r *GuestbookReconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).For(&webappv1.Guestbook{}).Owns(&corev1.ConfigMap{}).Named("guestbook").Complete(r)
}
