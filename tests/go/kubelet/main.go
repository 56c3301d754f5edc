// A kubelet that supports only SPDY, built from the streaming server that kubelets and container runtimes use, to test
// the translation of WebSockets. Containers have three commands: cat, fail and sizes. Ports echo.
package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"k8s.io/cri-streaming/pkg/streaming/portforward"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
)

type exit int

func (e exit) Error() string   { return fmt.Sprintf("exit status %d", int(e)) }
func (e exit) String() string  { return e.Error() }
func (e exit) Exited() bool    { return true }
func (e exit) ExitStatus() int { return int(e) }

type containers struct{}

func (containers) ExecInContainer(_ context.Context, _, _, _ string, cmd []string, in io.Reader, out, errs io.WriteCloser, _ bool, resize <-chan remotecommand.TerminalSize, _ time.Duration) error {
	switch cmd[0] {
	case "fail":
		_, _ = io.WriteString(out, "out\n")
		_, _ = io.WriteString(errs, "err\n")
		return exit(7)
	case "sizes":
		return json.NewEncoder(out).Encode(<-resize)
	}
	_, err := io.Copy(out, in)
	return err
}

func (c containers) AttachContainer(ctx context.Context, name, uid, container string, in io.Reader, out, errs io.WriteCloser, tty bool, resize <-chan remotecommand.TerminalSize) error {
	_, _ = io.WriteString(out, "attached\n")
	if in == nil {
		return nil
	}
	_, err := io.Copy(out, in)
	return err
}

func (containers) PortForward(_ context.Context, _, _ string, _ int32, stream io.ReadWriteCloser) error {
	_, err := io.Copy(stream, stream)
	return err
}

func serve(w http.ResponseWriter, r *http.Request) {
	fmt.Fprintln(os.Stderr, r.Method, r.URL, r.Header)
	if strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
		http.Error(w, "unable to upgrade: missing upgrade headers in request", http.StatusBadRequest)
		return
	}
	const idle, creation = time.Hour, 30 * time.Second
	path := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	if path[0] == "portForward" {
		portforward.ServePortForward(w, r, containers{}, path[2], "", &portforward.V4Options{}, idle, creation, portforward.SupportedProtocols)
		return
	}
	options, err := remotecommand.NewOptions(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if path[0] == "attach" {
		remotecommand.ServeAttach(w, r, containers{}, path[2], "", path[3], options, idle, creation, remotecommand.SupportedStreamingProtocols)
		return
	}
	remotecommand.ServeExec(w, r, containers{}, path[2], "", path[3], r.URL.Query()["command"], options, idle, creation, remotecommand.SupportedStreamingProtocols)
}

func main() {
	cert := flag.String("tls-cert-file", "", "its certificate")
	key := flag.String("tls-private-key-file", "", "the key of it")
	flag.Parse()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	pair, err := tls.LoadX509KeyPair(*cert, *key)
	if err != nil {
		panic(err)
	}
	// Client certificates are requested and not verified; other tests cover that.
	config := &tls.Config{Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequestClientCert}
	fmt.Println("listening on", listener.Addr())
	panic(http.Serve(tls.NewListener(listener, config), http.HandlerFunc(serve)))
}
