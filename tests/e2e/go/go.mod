module shop.test/shop

go 1.19

require github.com/getsentry/sentry-go v0.29.1

require (
	golang.org/x/sys v0.18.0 // indirect
	golang.org/x/text v0.14.0 // indirect
)
