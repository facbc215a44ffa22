package hybrid

import (
	"strings"

	"github.com/redis/go-redis/v9"
)

// isURL reports whether an address of a client is a URL. Such a client never reaches a
// server, which would look like an outage that does not end.
func isURL(rdb redis.UniversalClient) bool {
	for _, addr := range addresses(rdb) {
		for _, scheme := range []string{"redis://", "rediss://", "unix://"} {
			if strings.HasPrefix(addr, scheme) {
				return true
			}
		}
	}
	return false
}

// addresses are those that a client was made with, as far as it tells.
func addresses(rdb redis.UniversalClient) []string {
	switch c := rdb.(type) {
	case interface{ Options() *redis.Options }:
		return []string{c.Options().Addr}
	case interface{ Options() *redis.ClusterOptions }:
		return c.Options().Addrs
	case interface{ Options() *redis.RingOptions }:
		var all []string
		for _, addr := range c.Options().Addrs {
			all = append(all, addr)
		}
		return all
	}
	return nil
}
