// Package browsertest has tests and nothing else: the playground's page in a real
// browser. `make test-browser` installs Chromium where it can and runs them. It is a
// module of its own so that the library's users do not get a browser's driver.
package browsertest
