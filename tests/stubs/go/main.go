// Drives a server with the stubs that buf generates for Go, like a Go program that manages APIServices and objects over gRPC.
//
//	stubs ADDRESS CERTS     ADDRESS: host:port of the control service; CERTS: the folder `certs` of its data folder
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	apiregistrationv1 "portico/tests/stubs/gen/portico/apiregistration/v1"
	historyv1 "portico/tests/stubs/gen/portico/history/v1"
	objectsv1 "portico/tests/stubs/gen/portico/objects/v1"
	routesv1 "portico/tests/stubs/gen/portico/routes/v1"
)

// Time limit of all checks.
const bound = 60 * time.Second

const apiService = "v1.stubs.example.com"

func main() {
	if len(os.Args) != 3 {
		log.Fatal("usage: stubs ADDRESS CERTS")
	}
	ctx, cancel := context.WithTimeout(context.Background(), bound)
	defer cancel()
	if err := run(ctx, os.Args[1], os.Args[2]); err != nil {
		log.Fatalf("go stubs: %v", err)
	}
	fmt.Println("go stubs: registered, watched, explained, wrote, listed and refused")
}

func run(ctx context.Context, address, certs string) error {
	connection, err := connect(address, certs)
	if err != nil {
		return err
	}
	defer connection.Close()
	return errors.Join(apiServices(ctx, connection), objects(ctx, connection))
}

func connect(address, certs string) (*grpc.ClientConn, error) {
	client, err := tls.LoadX509KeyPair(filepath.Join(certs, "admin.crt"), filepath.Join(certs, "admin.key"))
	if err != nil {
		return nil, err
	}
	authority, err := os.ReadFile(filepath.Join(certs, "internal-ca.crt"))
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(authority) {
		return nil, errors.New("no certificate in internal-ca.crt")
	}
	config := &tls.Config{Certificates: []tls.Certificate{client}, RootCAs: roots}
	return grpc.NewClient(address, grpc.WithTransportCredentials(credentials.NewTLS(config)))
}

// A watch starts, an APIService is created and observed, explained, and deleted; an invalid one is refused with its fields.
func apiServices(ctx context.Context, connection *grpc.ClientConn) error {
	client := apiregistrationv1.NewAPIServicesClient(connection)
	selected := &apiregistrationv1.WatchRequest{FieldSelector: "metadata.name=" + apiService}
	events, err := client.Watch(ctx, selected)
	if err != nil {
		return err
	}
	wanted := &apiregistrationv1.APIService{
		Metadata: &apiregistrationv1.ObjectMeta{Name: apiService},
		Spec: &apiregistrationv1.APIServiceSpec{
			Group: "stubs.example.com", Version: "v1", GroupPriorityMinimum: 1000, VersionPriority: 15, InsecureSkipTlsVerify: true,
			Service: &apiregistrationv1.ServiceReference{Namespace: "default", Name: "nowhere"},
		},
	}
	created, err := client.Create(ctx, &apiregistrationv1.CreateRequest{ApiService: wanted})
	if err != nil {
		return fmt.Errorf("create: %w", err)
	}
	event, err := events.Recv()
	if err != nil {
		return fmt.Errorf("watch: %w", err)
	}
	if event.Type != apiregistrationv1.EventType_EVENT_TYPE_ADDED || event.Object.Metadata.Uid != created.Metadata.Uid {
		return fmt.Errorf("the watch brought %v", event)
	}
	explained, err := routesv1.NewRoutesClient(connection).Explain(ctx, &routesv1.ExplainRequest{Subject: "stubs.example.com/v1"})
	if err != nil {
		return fmt.Errorf("explain: %w", err)
	}
	if explained.Ok || explained.ApiService != apiService {
		return fmt.Errorf("nobody serves it, and it is explained as %v", explained)
	}
	if _, err = client.Delete(ctx, &apiregistrationv1.DeleteRequest{Name: apiService}); err != nil {
		return fmt.Errorf("delete: %w", err)
	}
	wanted.Spec.VersionPriority = 0
	_, err = client.Create(ctx, &apiregistrationv1.CreateRequest{ApiService: wanted})
	return refusedFor(err, "spec.versionPriority")
}

// refusedFor checks an INVALID_ARGUMENT whose details name the field.
func refusedFor(err error, field string) error {
	refused, _ := status.FromError(err)
	if refused.Code() != codes.InvalidArgument {
		return fmt.Errorf("a wrong %s is answered by %v", field, err)
	}
	for _, detail := range refused.Details() {
		if request, ok := detail.(*errdetails.BadRequest); ok && strings.Contains(request.String(), field) {
			return nil
		}
	}
	return fmt.Errorf("no detail names %s: %v", field, refused.Details())
}

// A ConfigMap is created, listed in chunks, deleted, and its history read.
func objects(ctx context.Context, connection *grpc.ClientConn) error {
	client := objectsv1.NewObjectsClient(connection)
	collection := &objectsv1.Target{Version: "v1", Resource: "configmaps", Namespace: "default"}
	one := &objectsv1.Target{Version: "v1", Resource: "configmaps", Namespace: "default", Name: "by-stubs"}
	body := []byte(`{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "by-stubs"}, "data": {"a": "b"}}`)
	create := &objectsv1.Call{Target: collection, Verb: "create", Body: body}
	if _, err := client.Do(ctx, &objectsv1.DoRequest{Call: create}); err != nil {
		return fmt.Errorf("create a ConfigMap: %w", err)
	}
	names, err := list(ctx, client, collection)
	if err != nil {
		return fmt.Errorf("list: %w", err)
	}
	if !strings.Contains(" "+strings.Join(names, " ")+" ", " by-stubs ") {
		return fmt.Errorf("the list has %v", names)
	}
	_, err = client.Do(ctx, &objectsv1.DoRequest{Call: create})
	if status.Code(err) != codes.AlreadyExists {
		return fmt.Errorf("the same again is answered by %v", err)
	}
	if _, err := client.Do(ctx, &objectsv1.DoRequest{Call: &objectsv1.Call{Target: one, Verb: "delete"}}); err != nil {
		return fmt.Errorf("delete a ConfigMap: %w", err)
	}
	target := &historyv1.Target{Version: "v1", Resource: "configmaps", Namespace: "default", Name: "by-stubs"}
	states, err := historyv1.NewHistoryClient(connection).States(ctx, &historyv1.StatesRequest{Target: target})
	if err != nil {
		return fmt.Errorf("history: %w", err)
	}
	if len(states.States) != 2 || states.States[0].Change != historyv1.Change_CHANGE_DELETED {
		return fmt.Errorf("its history is %v", states)
	}
	return nil
}

// list joins the chunks of a list, and returns the names in it.
func list(ctx context.Context, client objectsv1.ObjectsClient, collection *objectsv1.Target) ([]string, error) {
	parts, err := client.List(ctx, &objectsv1.ListRequest{Call: &objectsv1.Call{Target: collection, Verb: "list"}})
	if err != nil {
		return nil, err
	}
	var body []byte
	for {
		part, err := parts.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		body = append(body, part.Body...)
	}
	var found struct {
		Items []struct {
			Metadata struct{ Name string }
		}
	}
	if err := json.Unmarshal(body, &found); err != nil {
		return nil, err
	}
	names := []string{}
	for _, item := range found.Items {
		names = append(names, item.Metadata.Name)
	}
	return names, nil
}
