// Package v1 is the API of a small operator in the layout of kubebuilder.
package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the group version of these types.
var GroupVersion = schema.GroupVersion{Group: "webapp.example.com", Version: "v1"}

// AddToScheme registers the types.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &Guestbook{}, &GuestbookList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}

// GuestbookSpec is the desired state.
type GuestbookSpec struct {
	// Pages is the desired number of pages; the webhook defaults it to 1.
	Pages int32 `json:"pages,omitempty"`
	// Title is immutable.
	Title string `json:"title"`
}

// GuestbookStatus is the observed state.
type GuestbookStatus struct {
	Pages      int32              `json:"pages,omitempty"`
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Guestbook is a ConfigMap with pages.
type Guestbook struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   GuestbookSpec   `json:"spec"`
	Status GuestbookStatus `json:"status,omitempty"`
}

// GuestbookList is a list of them.
type GuestbookList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Guestbook `json:"items"`
}

// DeepCopyInto copies the object into another one.
func (in *Guestbook) DeepCopyInto(out *Guestbook) {
	*out = *in
	in.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	if in.Status.Conditions != nil {
		out.Status.Conditions = make([]metav1.Condition, len(in.Status.Conditions))
		for i := range in.Status.Conditions {
			in.Status.Conditions[i].DeepCopyInto(&out.Status.Conditions[i])
		}
	}
}

// DeepCopyObject returns a copy.
func (in *Guestbook) DeepCopyObject() runtime.Object {
	out := new(Guestbook)
	in.DeepCopyInto(out)
	return out
}

// DeepCopyObject returns a copy.
func (in *GuestbookList) DeepCopyObject() runtime.Object {
	out := &GuestbookList{TypeMeta: in.TypeMeta}
	in.ListMeta.DeepCopyInto(&out.ListMeta)
	out.Items = make([]Guestbook, len(in.Items))
	for i := range in.Items {
		in.Items[i].DeepCopyInto(&out.Items[i])
	}
	return out
}
