package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	_ "embed"
)

// samples has one small object of many kinds, separated by lines of `---`.
//
//go:embed samples.yaml
var samples string

// bothEncodings creates each sample as JSON and as protobuf, and reads each as both.
func bothEncodings(ctx context.Context, config *rest.Config) error {
	client, resources, err := discovered(config)
	if err != nil {
		return err
	}
	var all error
	for _, sample := range strings.Split(samples, "\n---\n") {
		body, err := yaml.YAMLToJSON([]byte(sample))
		if err != nil {
			return fmt.Errorf("%w in %s", err, sample)
		}
		object, kind, err := scheme.Codecs.UniversalDeserializer().Decode(body, nil, nil)
		if err != nil {
			return fmt.Errorf("%w in %s", err, sample)
		}
		path, ok := resources[kind.String()]
		if !ok {
			all = errors.Join(all, fmt.Errorf("%s is not served", kind))
			continue
		}
		for _, media := range []string{runtime.ContentTypeJSON, runtime.ContentTypeProtobuf} {
			if err := createAndCompare(ctx, client, path, object, media); err != nil {
				all = errors.Join(all, fmt.Errorf("%s as %s: %w", kind, media, err))
			}
		}
	}
	return all
}

func createAndCompare(ctx context.Context, client rest.Interface, path string, object runtime.Object, media string) error {
	body, err := encode(object, media)
	if err != nil {
		return err
	}
	answer, err := client.Post().AbsPath(path).SetHeader("Content-Type", media).
		SetHeader("Accept", runtime.ContentTypeProtobuf).Body(body).DoRaw(ctx)
	if err != nil {
		return fmt.Errorf("create: %w", err)
	}
	created, err := runtime.Decode(scheme.Codecs.UniversalDeserializer(), answer)
	if err != nil {
		return err
	}
	name := created.(interface{ GetName() string }).GetName()
	_, err = compare(ctx, client, path+"/"+name)
	if err == nil {
		_, err = client.Delete().AbsPath(path+"/"+name).Param("gracePeriodSeconds", "0").DoRaw(ctx)
	}
	return err
}

// compare reads a path as JSON and as protobuf. The protobuf must equal the encoding of the JSON by Go's encoder.
func compare(ctx context.Context, client rest.Interface, path string) (runtime.Object, error) {
	var object runtime.Object
	var err error
	// An object that changed between the reads is read again.
	for range 5 {
		if object, err = compareOnce(ctx, client, path); err == nil {
			break
		}
	}
	return object, err
}

func compareOnce(ctx context.Context, client rest.Interface, path string) (runtime.Object, error) {
	read := func(media string) ([]byte, runtime.Object, error) {
		raw, err := client.Get().AbsPath(path).SetHeader("Accept", media).DoRaw(ctx)
		if err != nil {
			return nil, nil, err
		}
		object, err := runtime.Decode(scheme.Codecs.UniversalDeserializer(), raw)
		return raw, object, err
	}
	_, ofJSON, err := read(runtime.ContentTypeJSON)
	if err != nil {
		return nil, err
	}
	raw, ofProtobuf, err := read(runtime.ContentTypeProtobuf)
	if err != nil {
		return nil, err
	}
	// Compares the bytes, not the objects: JSON contains the kind of a template inside an object, protobuf does not.
	want, err := encode(ofJSON, runtime.ContentTypeProtobuf)
	if err == nil && !bytes.Equal(raw, want) {
		a, _ := json.Marshal(ofJSON)
		b, _ := json.Marshal(ofProtobuf)
		err = fmt.Errorf("%s is %s in JSON and %s in protobuf, written as\n%q and not as\n%q", path, a, b, raw, want)
	}
	return ofJSON, err
}

func encode(object runtime.Object, media string) ([]byte, error) {
	info, _ := runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), media)
	kind := object.GetObjectKind().GroupVersionKind()
	return runtime.Encode(scheme.Codecs.EncoderForVersion(info.Serializer, kind.GroupVersion()), object)
}

// everyList compares the list of each resource that is served.
func everyList(ctx context.Context, config *rest.Config) error {
	client, resources, err := discovered(config)
	if err != nil {
		return err
	}
	var all error
	for kind, path := range resources {
		if strings.Contains(kind, "CustomResourceDefinition") || strings.Contains(kind, "APIService") {
			// Types of other modules.
			continue
		}
		path = strings.Replace(path, "/namespaces/default/", "/", 1)
		if listable[kind] {
			if _, err := compare(ctx, client, path); err != nil {
				all = errors.Join(all, err)
			}
		}
	}
	return all
}

// listable returns the kinds that have the verb list in discovery.
var listable = map[string]bool{}

// discovered returns the path of each kind's collection; discovery is read as protobuf as well.
func discovered(config *rest.Config) (rest.Interface, map[string]string, error) {
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, nil, err
	}
	_, lists, err := client.ServerGroupsAndResources()
	if err != nil {
		return nil, nil, fmt.Errorf("discovery: %w", err)
	}
	paths := map[string]string{}
	for _, list := range lists {
		prefix := "/apis/" + list.GroupVersion
		group, version, found := strings.Cut(list.GroupVersion, "/")
		if !found {
			prefix, group, version = "/api/v1", "", "v1"
		}
		for _, resource := range list.APIResources {
			if strings.Contains(resource.Name, "/") {
				continue
			}
			kind := fmt.Sprintf("%s/%s, Kind=%s", group, version, resource.Kind)
			if resource.Namespaced {
				paths[kind] = prefix + "/namespaces/default/" + resource.Name
			} else {
				paths[kind] = prefix + "/" + resource.Name
			}
			for _, verb := range resource.Verbs {
				listable[kind] = listable[kind] || verb == "list"
			}
		}
	}
	return client.RESTClient(), paths, nil
}
