// Command go drives a running server with client-go over protobuf: typed clients and informers of ten kinds, the
// metadata client, and a comparison of many kinds in JSON and in protobuf.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

func main() {
	kubeconfig := flag.String("kubeconfig", "", "the server's admin.kubeconfig")
	flag.Parse()
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	config.QPS, config.Burst = 1000, 1000
	protobuf := rest.CopyConfig(config)
	protobuf.ContentType = runtime.ContentTypeProtobuf
	// Only protobuf is accepted: a server that falls back to JSON fails.
	protobuf.AcceptContentTypes = runtime.ContentTypeProtobuf

	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	failed := false
	for _, step := range []struct {
		name string
		run  func(context.Context, *rest.Config) error
	}{
		{"typed clients and informers of ten kinds", tenKinds},
		{"errors and options", errorsAndOptions},
		{"the metadata client", metadataClient},
		{"many kinds in both encodings", bothEncodings},
		{"every list in both encodings", everyList},
	} {
		started := time.Now()
		if err := step.run(ctx, protobuf); err != nil {
			failed = true
			fmt.Printf("FAILED: %s: %v\n", step.name, err)
			continue
		}
		fmt.Printf("ok: %s (%d ms)\n", step.name, time.Since(started).Milliseconds())
	}
	if failed {
		os.Exit(1)
	}
}
