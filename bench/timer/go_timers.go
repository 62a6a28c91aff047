// What the timers of Go's runtime cost, in the scenarios of timer_bench.cc: a JSON object a line. CPU time of the process, so the
// collector counts; one processor. time.AfterFunc is what a server uses: each expiry starts a goroutine.
//
//	go_timers RUNS N ...
package main

import (
	"fmt"
	"math/rand"
	"os"
	"runtime"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"
)

const rangeMs = 60_000

func cpuNs() float64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err)
	}
	return float64(usage.Utime.Nano() + usage.Stime.Nano())
}

// The CPU time of body for each of its operations; the best of all runs stays in *best.
func measure(best *float64, operations int, body func()) {
	start := cpuNs()
	body()
	if ns := (cpuNs() - start) / float64(operations); *best == 0 || ns < *best {
		*best = ns
	}
}

func stopAll(timers []*time.Timer) {
	for _, timer := range timers {
		timer.Stop()
	}
	runtime.GC()
}

func main() {
	runtime.GOMAXPROCS(1)
	runs, _ := strconv.Atoi(os.Args[1])
	for _, text := range os.Args[2:] {
		n, _ := strconv.Atoi(text)
		operations := 4 * n
		if operations > 1_000_000 {
			operations = 1_000_000
		}
		var fill, replace, refresh, rpc, expire float64
		for run := 0; run < runs; run++ {
			random := rand.New(rand.NewSource(int64(n)))
			delay := func() time.Duration { return time.Duration(1+random.Intn(rangeMs)) * time.Millisecond }
			victims := make([]uint32, operations)
			delays := make([]uint32, operations)
			for k := range victims {
				victims[k] = uint32(random.Intn(n))
				delays[k] = uint32(delay() / time.Millisecond)
			}
			none := func() {}
			timers := make([]*time.Timer, n)
			order := random.Perm(n)

			// An hour on top: nothing falls due while it is measured.
			measure(&fill, n, func() {
				for _, i := range order {
					timers[i] = time.AfterFunc(time.Hour+time.Duration(i)*time.Millisecond, none)
				}
			})
			measure(&replace, operations, func() {
				for k, i := range victims {
					timers[i].Stop()
					timers[i] = time.AfterFunc(time.Hour+time.Duration(delays[k])*time.Millisecond, none)
				}
			})
			measure(&refresh, operations, func() {
				for k, i := range victims {
					timers[i].Reset(2*time.Hour + time.Duration(k/64)*time.Millisecond)
				}
			})
			stopAll(timers)

			for i := range timers {
				timers[i] = time.AfterFunc(time.Hour, none)
			}
			measure(&rpc, operations, func() {
				for k := 0; k < operations; k++ {
					timers[k%n].Stop()
					timers[k%n] = time.AfterFunc(time.Hour, none)
				}
			})
			stopAll(timers)

			// Due within 20 ms, after they are all armed; waiting costs nothing.
			var fired int64
			count := func() { atomic.AddInt64(&fired, 1) }
			arming := time.Second + time.Duration(n)*time.Microsecond
			start := time.Now()
			for _, i := range order {
				timers[i] = time.AfterFunc(arming-time.Since(start)+delay()/3_000, count)
			}
			time.Sleep(arming - time.Since(start) - 50*time.Millisecond)
			measure(&expire, n, func() {
				for atomic.LoadInt64(&fired) < int64(n) {
					time.Sleep(20 * time.Millisecond)
				}
			})
		}
		for _, row := range []struct {
			scenario string
			ns       float64
		}{{"fill", fill}, {"cancel+insert", replace}, {"refresh", refresh}, {"rpc", rpc}, {"expire-random", expire}} {
			fmt.Printf("{\"structure\":\"go\",\"n\":%d,\"scenario\":\"%s\",\"ns\":%.2f,\"trace\":\"\"}\n", n, row.scenario, row.ns)
		}
	}
}
