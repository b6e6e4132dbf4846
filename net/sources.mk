net_src := net/addr.c net/url.c net/httpparse.c net/httpdate.c net/io.c net/dns.c net/resolve.c net/dial.c \
	net/trust.c net/tls.c net/tlswhy.c net/stream.c net/proxy.c net/http.c net/answer.c net/pool.c net/net.c \
	net/retry.c
