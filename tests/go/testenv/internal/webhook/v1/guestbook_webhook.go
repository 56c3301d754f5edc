// Package v1 contains the webhooks of Guestbooks.
package v1

import (
	"context"
	"fmt"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	webappv1 "portico.example.com/guestbook/api/v1"
)

// SetupGuestbookWebhookWithManager registers both webhooks.
func SetupGuestbookWebhookWithManager(mgr ctrl.Manager) error {
	return ctrl.NewWebhookManagedBy(mgr, &webappv1.Guestbook{}).
		WithDefaulter(&GuestbookDefaulter{}).WithValidator(&GuestbookValidator{}).Complete()
}

// GuestbookDefaulter sets the default number of pages.
type GuestbookDefaulter struct{}

// Default implements admission.Defaulter.
func (*GuestbookDefaulter) Default(_ context.Context, book *webappv1.Guestbook) error {
	if book.Spec.Pages == 0 {
		book.Spec.Pages = 1
	}
	return nil
}

// GuestbookValidator rejects changes of titles.
type GuestbookValidator struct{}

// ValidateCreate implements admission.Validator.
func (*GuestbookValidator) ValidateCreate(_ context.Context, book *webappv1.Guestbook) (admission.Warnings, error) {
	if book.Spec.Title == "" {
		return nil, fmt.Errorf("a title is needed")
	}
	return nil, nil
}

// ValidateUpdate implements admission.Validator.
func (*GuestbookValidator) ValidateUpdate(_ context.Context, was, is *webappv1.Guestbook) (admission.Warnings, error) {
	if was.Spec.Title != is.Spec.Title {
		return nil, fmt.Errorf("the title %q stays", was.Spec.Title)
	}
	return nil, nil
}

// ValidateDelete implements admission.Validator.
func (*GuestbookValidator) ValidateDelete(context.Context, *webappv1.Guestbook) (admission.Warnings, error) {
	return nil, nil
}
