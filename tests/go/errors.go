package main

import (
	"context"
	"fmt"

	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
)

// errorsAndOptions sends invalid requests, whose refusals must be protobuf as well.
func errorsAndOptions(ctx context.Context, config *rest.Config) error {
	k, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	maps := k.CoreV1().ConfigMaps("default")
	if _, err := maps.Get(ctx, "missing", meta.GetOptions{}); !apierrors.IsNotFound(err) {
		return fmt.Errorf("a missing object: %v", err)
	}
	bad := &core.ConfigMap{ObjectMeta: meta.ObjectMeta{Name: "Not A Name"}}
	_, err = maps.Create(ctx, bad, meta.CreateOptions{})
	status, ok := err.(apierrors.APIStatus)
	if !apierrors.IsInvalid(err) || !ok || len(status.Status().Details.Causes) == 0 {
		return fmt.Errorf("an invalid object: %#v", err)
	}
	dry := &core.ConfigMap{ObjectMeta: meta.ObjectMeta{GenerateName: "dry-"}}
	made, err := maps.Create(ctx, dry, meta.CreateOptions{DryRun: []string{meta.DryRunAll}})
	if err != nil || len(made.Name) != len("dry-")+5 {
		return fmt.Errorf("a dry run: %v, %v", made, err)
	}
	if _, err := maps.Create(ctx, &core.ConfigMap{ObjectMeta: meta.ObjectMeta{Name: "kept"}}, meta.CreateOptions{}); err != nil {
		return err
	}
	wrong := types.UID("another")
	err = maps.Delete(ctx, "kept", meta.DeleteOptions{Preconditions: &meta.Preconditions{UID: &wrong}})
	if !apierrors.IsConflict(err) {
		return fmt.Errorf("a delete of another object: %v", err)
	}
	patched, err := maps.Patch(ctx, "kept", types.StrategicMergePatchType, []byte(`{"data":{"a":"b"}}`), meta.PatchOptions{})
	if err != nil || patched.Data["a"] != "b" {
		return fmt.Errorf("a patch: %v, %v", patched, err)
	}
	if _, err := maps.Watch(ctx, meta.ListOptions{LabelSelector: "a b"}); !apierrors.IsBadRequest(err) {
		return fmt.Errorf("a bad selector: %v", err)
	}
	anonymous := rest.AnonymousClientConfig(config)
	anonymous.ContentConfig = config.ContentConfig
	stranger, err := kubernetes.NewForConfig(anonymous)
	if err != nil {
		return err
	}
	if _, err := stranger.CoreV1().Secrets("").List(ctx, meta.ListOptions{}); !apierrors.IsForbidden(err) && !apierrors.IsUnauthorized(err) {
		return fmt.Errorf("a stranger: %v", err)
	}
	return maps.DeleteCollection(ctx, meta.DeleteOptions{}, meta.ListOptions{FieldSelector: "metadata.name=kept"})
}

// metadataClient gets, lists and watches PartialObjectMetadata.
func metadataClient(ctx context.Context, config *rest.Config) error {
	client, err := metadata.NewForConfig(config)
	if err != nil {
		return err
	}
	k, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	resource := core.SchemeGroupVersion.WithResource("configmaps")
	maps := client.Resource(resource).Namespace("default")
	list, err := maps.List(ctx, meta.ListOptions{})
	if err != nil {
		return fmt.Errorf("list: %w", err)
	}
	watch, err := maps.Watch(ctx, meta.ListOptions{ResourceVersion: list.ResourceVersion})
	if err != nil {
		return fmt.Errorf("watch: %w", err)
	}
	defer watch.Stop()
	object := &core.ConfigMap{ObjectMeta: meta.ObjectMeta{Name: "metadata", Labels: map[string]string{"a": "b"}}}
	if _, err := k.CoreV1().ConfigMaps("default").Create(ctx, object, meta.CreateOptions{}); err != nil {
		return err
	}
	event := <-watch.ResultChan()
	seen, ok := event.Object.(*meta.PartialObjectMetadata)
	if !ok || seen.Name != "metadata" || seen.Labels["a"] != "b" {
		return fmt.Errorf("watched %+v", event)
	}
	got, err := maps.Get(ctx, "metadata", meta.GetOptions{})
	if err != nil || got.UID != seen.UID {
		return fmt.Errorf("got %+v, %w", got, err)
	}
	return maps.Delete(ctx, "metadata", meta.DeleteOptions{})
}
