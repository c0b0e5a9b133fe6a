import Testing

@testable import Peers

/// Parsing of requests and formatting of replies.
@Suite struct HTTPReaderTests {
  private static let post = "POST /a/b?x=1%2B1+2&y HTTP/1.1\r\nHost: h\r\ncontent-LENGTH:  5 \r\nX: 1\r\nx: 2\r\n\r\nhello"

  private func feed(_ text: String, most: Int = 100) -> HTTPReader.Outcome {
    var reader = HTTPReader(maxBodySize: most)
    return reader.receive(Array(text.utf8))
  }

  private func request(_ text: String) -> ReceivedHTTPRequest? {
    if case .complete(let request) = feed(text) { request } else { nil }
  }

  @Test func `a request is parsed into method, path, query, fields and body`() throws {
    let request = try #require(self.request(Self.post))
    #expect(request.method == "POST" && request.path == "/a/b" && request.body == Array("hello".utf8))
    #expect(request.query == ["x": "1+1 2", "y": ""])
    #expect(request.fields == ["host": "h", "content-length": "5", "x": "1, 2"])
  }

  @Test func `a request is complete with its last byte, wherever it is split`() {
    let bytes = Array(Self.post.utf8)
    for split in 1..<bytes.count {
      var reader = HTTPReader(maxBodySize: 5)
      let first = reader.receive(Array(bytes[..<split]))
      let second = reader.receive(Array(bytes[split...]))
      #expect(first == .unfinished && second == feed(Self.post), "split at \(split)")
    }
    var reader = HTTPReader(maxBodySize: 5)
    for byte in bytes.dropLast() {
      let outcome = reader.receive([byte])
      #expect(outcome == .unfinished)
    }
    let last = reader.receive([bytes[bytes.count - 1]])
    #expect(last == feed(Self.post))
  }

  @Test func `bytes after a request are ignored`() {
    let get = request("GET / HTTP/1.1\r\n\r\n")
    #expect(get?.body == [])
    #expect(request("GET / HTTP/1.1\r\n\r\nGET /second HTTP/1.1\r\n\r\n") == get)
    #expect(request("GET   /     HTTP/1.1\r\n\r\n\u{0}\u{1}garbage") == get)
    #expect(request(Self.post + "more") == request(Self.post))
  }

  @Test func `malformed lines are tolerated`() {
    #expect(request("\r\n\r\n")?.path == "")
    #expect(request("GET\r\nno colon\r\n: nameless\r\nempty:\r\n\r\n")?.fields == ["": "nameless", "empty": ""])
  }

  @Test func `a request that is too long or has no length is rejected at once`() {
    let long = String(repeating: "x", count: 16_384)
    #expect(feed(long) == .rejected(431, "the request is too long"))
    #expect(feed(String(long.dropLast())) == .unfinished)
    #expect(feed("GET /\(long) HTTP/1.1\r\n\r\n") == .rejected(431, "the request is too long"))
    #expect(feed("POST / HTTP/1.1\r\nContent-Length: 101\r\n\r\n") == .rejected(413, "a body of 101 bytes is too long"))
    #expect(feed("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n") == .rejected(411, "the body has no Content-Length"))
    for length in ["-1", "x", "5, 5", "99999999999999999999", "0x5"] {
      #expect(feed("POST / HTTP/1.1\r\nContent-Length: \(length)\r\n\r\n") == .rejected(400, "the Content-Length is not a number"))
    }
  }

  @Test func `a reply has its length and closes the connection`() {
    let reply = HTTPReply(302, "é", type: "text/plain", fields: ["Location": "/x", "A": "b"])
    #expect(
      String(decoding: reply.bytes, as: UTF8.self)
        == "HTTP/1.1 302 Found\r\nContent-Type: text/plain\r\nContent-Length: 2\r\nA: b\r\nLocation: /x\r\nConnection: close\r\n\r\né")
    #expect(String(decoding: HTTPReply(204, type: nil).bytes, as: UTF8.self) == "HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")
  }
}
