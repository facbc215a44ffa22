// Package e2e tests the limiter as a service uses it: several processes, real
// Redis servers and real time. It holds nothing but tests.
//
// A worker is the test binary, started again as a process of its own that
// serves the parent's orders (worker_test.go and process_test.go). All
// processes put one clock on what they do, so that the parent can hold the
// calls of all of them against the limit (window_test.go).
//
// A storm is twenty such processes under faults at random (storm_test.go). What
// they admit is in files that outlive them.
//
// No test asserts how fast something is, except in relation to a control that
// ran beside it (noise_test.go).
package e2e
