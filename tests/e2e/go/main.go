// A program that fails, with Sentry's client of Go: run by test_sentry_clients.py. Argument: the
// DSN. Sends an error with all that goes with one, a panic that was recovered from, and a message;
// then prints the requests that left, as they left: headers and body.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/getsentry/sentry-go"

	"shop.test/shop/till"
)

const patience = time.Minute

type request struct {
	Headers map[string]string `json:"headers"`
	Body    []byte            `json:"body"`
}

// The client's own transport sends by this one, from one goroutine.
type tee struct{ sent []request }

func (t *tee) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	headers := map[string]string{}
	for name := range r.Header {
		headers[name] = r.Header.Get(name)
	}
	t.sent = append(t.sent, request{headers, body})
	r.Body = io.NopCloser(bytes.NewReader(body))
	return http.DefaultTransport.RoundTrip(r)
}

// Its lines are far from those of the trace, which are sent, too.
func describe() {
	sentry.ConfigureScope(func(scope *sentry.Scope) {
		scope.SetTag("colour", "blå")
		scope.SetUser(sentry.User{ID: "4711", Username: "anna"})
		scope.SetContext("shop", sentry.Context{"shop_password_2": "hunter2-pw", "lines": []int{1, 2, 3}})
	})
	sentry.AddBreadcrumb(&sentry.Breadcrumb{Category: "query", Message: "SELECT name FROM customer",
		Level: sentry.LevelInfo})
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

func capture(err error) {
	sentry.CaptureException(err)
}

func book() {
	defer sentry.Recover()
	till.Book("anna")
}

func main() {
	sent := &tee{}
	err := sentry.Init(sentry.ClientOptions{
		Dsn: os.Args[1], Release: "shop@1.4.2", Environment: "staging", ServerName: "web-3",
		HTTPTransport: sent,
	})
	if err != nil {
		fail(err)
	}
	describe()
	till.Charge([]float64{12.5, 3}, capture)
	book()
	sentry.CaptureMessage("the disk is nearly full")
	if !sentry.Flush(patience) {
		fail(fmt.Errorf("%d requests left, and not all were answered", len(sent.sent)))
	}
	said := map[string]any{"version": sentry.SDKVersion, "sent": sent.sent}
	if err := json.NewEncoder(os.Stdout).Encode(said); err != nil {
		fail(err)
	}
}
