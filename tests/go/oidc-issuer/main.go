// A real OpenID provider for .ci/oidc: github.com/zitadel/oidc over TLS, with new keys at each start.
//
//	oidc-issuer serve ADDRESS CERTIFICATE KEY         serves https://localhost:PORT/ until it is ended
//	oidc-issuer login ISSUER CA USER PASSWORD         logs in as a browser would and prints the ID token
package main

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"

	"github.com/zitadel/oidc/v3/example/server/exampleop"
	"github.com/zitadel/oidc/v3/example/server/storage"
	"github.com/zitadel/oidc/v3/pkg/client/rp"
	"github.com/zitadel/oidc/v3/pkg/oidc"
)

// The client that requests tokens, and its redirect URI (without a listener).
const (
	clientID = "kubernetes"
	callback = "http://localhost/auth/callback"
)

func main() {
	var err error
	switch arguments := os.Args[1:]; {
	case len(arguments) == 4 && arguments[0] == "serve":
		err = serve(arguments[1], arguments[2], arguments[3])
	case len(arguments) == 5 && arguments[0] == "login":
		err = login(arguments[1], arguments[2], arguments[3], arguments[4])
	default:
		err = errors.New("usage: oidc-issuer serve ADDRESS CERTIFICATE KEY | login ISSUER CA USER PASSWORD")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// serve serves the issuer https://localhost:PORT/.
func serve(address, certificate, key string) error {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return err
	}
	issuer := "https://localhost:" + port + "/"
	storage.RegisterClients(storage.NativeClient(clientID, callback))
	store := storage.NewStorage(storage.NewUserStore(issuer))
	logger := slog.New(slog.NewTextHandler(os.Stderr, nil))
	return http.ListenAndServeTLS(address, certificate, key, exampleop.SetupServer(issuer, store, logger, false))
}

// login uses the authorization code flow with PKCE: requests a login, submits the form, and exchanges the code for a token.
func login(issuer, ca, user, password string) error {
	browser, err := browser(ca)
	if err != nil {
		return err
	}
	ctx := context.Background()
	party, err := rp.NewRelyingPartyOIDC(ctx, issuer, clientID, "", callback, []string{oidc.ScopeOpenID}, rp.WithHTTPClient(browser))
	if err != nil {
		return err
	}
	verifier := rand.Text() + rand.Text()
	form, err := browser.Get(rp.AuthURL("state", party, rp.WithCodeChallenge(oidc.NewSHACodeChallenge(verifier))))
	if err != nil {
		return err
	}
	form.Body.Close()
	id := form.Request.URL.Query().Get("authRequestID")
	action := form.Request.URL.ResolveReference(&url.URL{Path: form.Request.URL.Path})
	back, err := browser.PostForm(action.String(), url.Values{"username": {user}, "password": {password}, "id": {id}})
	if err != nil {
		return err
	}
	defer back.Body.Close()
	location, err := back.Location()
	if err != nil {
		text, _ := io.ReadAll(back.Body)
		return fmt.Errorf("the provider did not accept the login (%s): %s", back.Status, text)
	}
	tokens, err := rp.CodeExchange[*oidc.IDTokenClaims](ctx, location.Query().Get("code"), party, rp.WithCodeVerifier(verifier))
	if err != nil {
		return err
	}
	fmt.Println(tokens.IDToken)
	return nil
}

// browser returns a client that stores cookies, trusts one authority, and follows redirects within the provider.
func browser(ca string) (*http.Client, error) {
	pem, err := os.ReadFile(ca)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s holds no certificate", ca)
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		return nil, err
	}
	return &http.Client{
		Jar:       jar,
		Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}},
		CheckRedirect: func(request *http.Request, _ []*http.Request) error {
			if request.URL.Scheme != "https" {
				return http.ErrUseLastResponse
			}
			return nil
		},
	}, nil
}
