package breaker

// DoLate is Do for a caller who looked before the breaker opened and comes
// after.
func (b *Breaker) DoLate(call func() error) error {
	defer b.deliver()
	return b.execute(call, false)
}
