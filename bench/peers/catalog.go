package peers

// All are the compared, in the order of the tables.
func All() []Peer {
	return []Peer{
		ours, oursKey, xtime, uber, chi,
		plain, plainAuto, plainRueidis, redisRate, ulule, throttle, zeroToken, zeroPeriod,
	}
}

// Absent are limiters that one might pick and that are not here, with the reason.
func Absent() [][2]string {
	return [][2]string{
		{"gubernator with GLOBAL", "embedded it brings 505 packages from outside of the standard library, the clients of Kubernetes and " +
			"etcd among them, against 297 of all that are here together; everybody who runs the tests would build them"},
		{"the Redis store of go-chi/httprate, httprate-redis", "the module could not be fetched where this was made"},
	}
}
