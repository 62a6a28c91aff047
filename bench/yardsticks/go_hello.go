// Yardstick: HTTP hello on Go's net/http.
//
//	go_hello
//
// Prints `listening on 127.0.0.1:PORT` and exits with 0 on SIGINT or SIGTERM.
package main

import (
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	end := make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGINT, syscall.SIGTERM)
	go func() {
		<-end
		os.Exit(0)
	}()
	http.HandleFunc("/hello", func(response http.ResponseWriter, _ *http.Request) {
		response.Header().Set("content-type", "text/plain")
		io.WriteString(response, "hello\n")
	})
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("listening on %s\n", listener.Addr())
	log.Fatal(http.Serve(listener, nil))
}
