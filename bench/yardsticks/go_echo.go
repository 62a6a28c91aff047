// Yardstick: echo in Go, a goroutine a connection. Pinned to one core the runtime has one processor.
//
//	go_echo [--buffer BYTES] [--slow]
//
// --slow: sleeps or computes where a message asks for that, as servers/slow_echo.cc.
// Prints `listening on 127.0.0.1:PORT` and exits with 0 on SIGINT or SIGTERM.
package main

import (
	"flag"
	"fmt"
	"log"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"
)

const slowTime = 5 * time.Millisecond

func cpuTime() time.Duration {
	var used syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &used)
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

func compute() {
	for end := cpuTime() + slowTime; cpuTime() < end; {
	}
}

func serve(connection net.Conn, size int, slow bool) {
	defer connection.Close()
	buffer := make([]byte, size)
	for {
		n, err := connection.Read(buffer)
		if err != nil {
			return
		}
		if slow && buffer[n-1] == 1 {
			time.Sleep(slowTime)
		}
		if slow && buffer[n-1] == 2 {
			compute()
		}
		if _, err = connection.Write(buffer[:n]); err != nil {
			return
		}
	}
}

func main() {
	size := flag.Int("buffer", 4096, "bytes of a connection's buffer")
	slow := flag.Bool("slow", false, "heed messages that ask for a slow answer")
	flag.Parse()
	end := make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGINT, syscall.SIGTERM)
	go func() {
		<-end
		os.Exit(0)
	}()
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("listening on %s\n", listener.Addr())
	for {
		connection, err := listener.Accept()
		if err != nil {
			log.Fatal(err)
		}
		go serve(connection, *size, *slow)
	}
}
