package remote

// The bounds, for the tests that fill them.
const (
	MaxInFlight = maxInFlight
	MaxProbes   = maxProbes
	MaxBatch    = maxBatch
	MaxQueue    = maxQueue
	CloseGrace  = closeGrace
)
