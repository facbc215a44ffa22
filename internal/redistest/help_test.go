package redistest_test

import "fmt"

func itoa[T int | int64](n T) string { return fmt.Sprint(n) }
