// Package otellimit exports the statistics of rate limiters as OpenTelemetry
// metrics.
//
//	unregister, err := otellimit.Register(provider, lim)
//
// The values are read from [hybrid.Limiter.Stats] when a reader collects, all in
// one callback, so that a request pays nothing for them. Only the metrics API is
// needed; which SDK and exporter stand behind it is up to the program.
//
// # Metrics
//
// All names begin with "resilient_limiter.", and every point has the attribute
// limiter, the name of its limiter.
//
//	name                    unit        other attributes
//	decisions               {request}   outcome: allowed, refused; source
//	shadowed                {request}
//	bucket_left.buckets     {request}   le
//	bucket_left.sum         1
//	redis.calls             {call}      operation, class
//	redis.calls.duration    s           operation
//	redis.calls.buckets     {call}      operation, le
//	script_loads            {call}
//	grants                  {lease}
//	tokens.granted          {token}
//	tokens.spent            {token}
//	tokens.returned         {token}
//	tokens.expired          {token}
//	tokens.lost             {token}
//	tokens.unaccounted      {token}
//	near_limit              {event}
//	degraded                {limiter}   1 or 0
//	degraded.time           s
//	masters.degraded        {master}
//	breaker.state           {limiter}   state: closed, open, half-open; 1 for the present one
//	instances               {instance}
//	instances.assumed       {limiter}   1 or 0
//	keys.by_mode            {key}       mode: exact, lump, rate
//	state_lost              {key}
//	instances.age           s
//	instances.live          {instance}
//	keys                    {key}
//	evictions               {key}
//	untracked               {request}
//	waiting                 {request}
//	events_dropped          {event}
//	event_panics            {event}
//
// Sources are those of [hybrid.Source], operations and classes those of
// [hybrid.Stats]; the class "none" is success. A key is never an attribute: who
// attacks with many keys would fill the memory of the metrics' back end.
//
// Most names become, in an exporter to Prometheus, those of promlimit, the
// collector for programs without OpenTelemetry.
//
// # Distributions
//
// OpenTelemetry has no histogram that is read in a callback, and one that is
// written to would cost each decision more than the decision itself. So a
// distribution is a set of counters: in "buckets" the observations up to and with
// the bound le, cumulated, as text, "+Inf" for all; besides their sum. A back end
// that knows Prometheus' classic histograms takes quantiles from them as they are:
//
//	histogram_quantile(0.99, sum by (le) (rate(resilient_limiter_redis_calls_buckets_total[5m])))
//
// The mean duration of a call is redis.calls.duration over redis.calls. What was
// left of buckets, bucket_left, is a part of the burst, from 0 to 1.
package otellimit
