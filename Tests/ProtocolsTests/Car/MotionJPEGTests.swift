import Testing

@testable import Protocols

/// Pictures in an HTTP response: as the car and other cameras send them, split everywhere, and damaged.
@Suite struct MotionJPEGTests {
  /// A picture with a thumbnail in a segment, fill bytes, two scans, stuffed bytes, restart markers, and line ends in the data.
  static let picture: [UInt8] =
    [0xFF, 0xD8] + segment(0xE1, [0xFF, 0xD8, 0xFF, 0xDA, 0, 2, 1, 0xFF, 0xD9]) + [0xFF] + segment(0xDB, []) + [0xFF, 0x01]
    + segment(0xDA, [1, 2]) + [0x31, 0xFF, 0x00, 0x0D, 0x0A, 0x2D, 0x2D, 0xFF, 0xD3, 0x33] + segment(0xC4, [0xFF, 0xD9])
    + segment(0xDA, [7])
    + [0x0A, 0xFF, 0xFF, 0x00, 0x44, 0xFF, 0xD9]
  static let small: [UInt8] = [0xFF, 0xD8] + segment(0xDA, [0]) + [0x55, 0xFF, 0xD9]

  /// The picture without its end marker.
  static let cut = Array(small.dropLast(2))

  static func segment(_ code: UInt8, _ bytes: [UInt8]) -> [UInt8] { [0xFF, code, 0, UInt8(bytes.count + 2)] + bytes }

  static let head = "HTTP/1.0 200 OK\r\nContent-Type: multipart/x-mixed-replace; boundary=frame\r\nServer: Werkzeug/0.11\r\n\r\n"

  /// As the car's server writes it.
  static func part(_ picture: [UInt8], head: String = "--frame\r\nContent-Type: image/jpeg\r\n\r\n") -> [UInt8] {
    Array(head.utf8) + picture + Array("\r\n\r\n".utf8)
  }

  static func events(_ pieces: [[UInt8]]) -> [MotionJPEG.Event] {
    var reader = MotionJPEG()
    return pieces.flatMap { reader.read($0) }
  }

  static func events(_ head: String, _ rest: [UInt8] = []) -> [MotionJPEG.Event] { events([Array(head.utf8) + rest]) }

  static func reason(_ events: [MotionJPEG.Event]) -> String? {
    guard case .failed(let words)? = events.last, events.count == 1 else { return nil }
    return words
  }

  @Test func `the request is HTTP 1.0, and nothing in it can start another line`() {
    #expect(
      String(decoding: MotionJPEG.request(host: "car:12346", path: "/video_feed"), as: UTF8.self)
        == "GET /video_feed HTTP/1.0\r\nHost: car:12346\r\nAccept: multipart/x-mixed-replace, image/jpeg\r\nConnection: close\r\n\r\n")
    let hostile = String(decoding: MotionJPEG.request(host: "a\r\nX: 1", path: "x y\r\nGET /ü"), as: UTF8.self)
    #expect(hostile.hasPrefix("GET /x%20y%0D%0AGET%20/%C3%BC HTTP/1.0\r\nHost: aX:1\r\nAccept"))
  }

  @Test func `the car's pictures are read at every split point`() {
    let stream = Array(Self.head.utf8) + Self.part(Self.picture) + Self.part(Self.small) + Self.part(Self.picture)
    let expected: [MotionJPEG.Event] = [.frame(Self.picture), .frame(Self.small), .frame(Self.picture)]
    for cut in 0...stream.count { #expect(Self.events([Array(stream[..<cut]), Array(stream[cut...])]) == expected, "cut at \(cut)") }
    #expect(Self.events(stream.map { [$0] }) == expected)
  }

  @Test func `a picture is complete at its last byte`() {
    var reader = MotionJPEG()
    let stream = Array(Self.head.utf8) + Array("--frame\r\nContent-Type: image/jpeg\r\n\r\n".utf8) + Self.picture
    #expect(reader.read(Array(stream[..<(stream.count - 1)])).isEmpty)
    #expect(reader.read([0xD9]) == [.frame(Self.picture)])
    #expect(reader.read(Array("\r\n\r\n--frame\r\n".utf8)).isEmpty)
  }

  @Test func `a given length is used, whatever the part contains`() {
    let inside = Self.cut + Array("\r\n--frame\r\n\r\n".utf8) + [0xFF, 0xD9, 0, 0]
    let head = "--frame\r\ncontent-LENGTH:\(inside.count)\r\nX-Timestamp: 1.5\r\n\r\n"
    let stream = Array(Self.head.utf8) + Self.part(Array(inside), head: head) + Self.part(Self.small)
    for cut in 0...stream.count {
      #expect(Self.events([Array(stream[..<cut]), Array(stream[cut...])]) == [.frame(Array(inside)), .frame(Self.small)], "cut at \(cut)")
    }
  }

  @Test(arguments: [
    "HTTP/1.1 200 OK\nCONTENT-TYPE:multipart/x-mixed-replace;boundary=frame\n\n",
    "HTTP/1.1 200\r\ncontent-type: Multipart/X-Mixed-Replace ; charset=\"a;boundary=b\" ; Boundary=\"frame\"\r\n\r\n",
    "HTTP/1.0 200 OK\r\nContent-Type: multipart/x-mixed-replace; boundary=--frame\r\n\r\nsome words before\r\n",
    "HTTP/1.0 200 OK\r\nTransfer-Encoding: identity\r\nContent-Type: multipart/x-mixed-replace; boundary = \"fr\\ame\" \r\n\r\n\r\n",
  ])
  func `headers of common servers are accepted`(_ head: String) {
    #expect(Self.events(head, Self.part(Self.picture) + Self.part(Self.small)) == [.frame(Self.picture), .frame(Self.small)])
  }

  @Test func `a boundary that includes dashes is found with and without two more`() {
    let head = Self.head.replacing("frame", with: "--cut")
    for line in ["--cut", "----cut"] {
      #expect(Self.events(head, Self.part(Self.small, head: "\(line)\n\n")) == [.frame(Self.small)])
    }
  }

  @Test func `a picture without an end marker ends at the next part, and other parts are skipped`() {
    let cut = Array(Self.picture.dropLast(2))
    #expect(
      Self.events(Self.head, Self.part(cut) + Self.part(Self.small)) == [.frame(cut), .frame(Self.small)])
    for spoilt in [Array("<html></html>".utf8), [0xFF, 0xD8, 0xFF, 0xE0, 0, 1, 2], [0xFF, 0xD8, 0x11], [0xFF, 0xD8], []] {
      #expect(Self.events(Self.head, Self.part(spoilt) + Self.part(Self.small)) == [.frame(Self.small)], "\(spoilt)")
    }
    let text = Self.part(Self.small, head: "--frame\r\nContent-Type: text/plain\r\n\r\n")
    let empty = Self.part([], head: "--frame\r\nContent-Length: 0\r\n\r\n")
    let wrong = Self.part(Array("no".utf8), head: "--frame\r\nContent-Length: 2\r\n\r\n")
    #expect(Self.events(Self.head, text + empty + wrong + Self.part(Self.small)) == [.frame(Self.small)])
  }

  @Test func `text that resembles a boundary is ignored, and the last boundary ends the stream`() {
    let lookalike = Self.part(Self.cut + Array("\n--frames\n--fram\nx--frame\n".utf8) + [0xFF, 0xD9])
    #expect(Self.events(Self.head, lookalike + Self.part(Self.small)).count == 2)
    let end = Self.part(Self.small) + Array("--frame--\r\n".utf8)
    #expect(Self.events(Self.head, end + Self.part(Self.small)) == [.frame(Self.small)])
  }

  @Test func `a single picture is read`() {
    for head in ["Content-Type: image/jpeg", "content-type: IMAGE/JPEG; q=1\r\nContent-Length: \(Self.picture.count)"] {
      let stream = Array("HTTP/1.1 200 OK\r\n\(head)\r\n\r\n".utf8) + Self.picture
      for cut in 0...stream.count { #expect(Self.events([Array(stream[..<cut]), Array(stream[cut...]), [1]]) == [.frame(Self.picture)]) }
    }
    for head in ["Content-Type: image/jpeg", "Content-Type: image/jpeg\r\nContent-Length: 5"] {
      #expect(
        Self.reason(Self.events("HTTP/1.1 200 OK\r\n\(head)\r\n\r\nhello"))
          == "not a JPEG picture; give the address of the stream itself")
    }
  }

  @Test(arguments: [
    ("HTTP/1.0 404 NOT FOUND\r\n\r\n", "the camera returned \"404 NOT FOUND\"; check that the video is on, and the address"),
    ("HTTP/1.0 302 \u{1b}[2J\r\n\r\n", "the camera returned \"302 \\x1B[2J\"; check that the video is on, and the address"),
    (
      "HTTP/1.0 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n\r\n",
      "the camera sends text/html instead of pictures; give the address of the stream itself"
    ),
    ("HTTP/1.0 200 OK\r\n\r\n", "the camera sends data of no type instead of pictures; give the address of the stream itself"),
    ("HTTP/1.0 200 OK\r\nContent-Type: multipart/x-mixed-replace\r\n\r\n", "no boundary in the camera's Content-Type"),
    (
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Type: image/jpeg\r\n\r\n",
      "the camera uses chunked encoding, which is not supported"
    ),
    ("SSH-2.0-OpenSSH_9.2\r\n\r\n", "not an HTTP response; check the address of the stream"),
    ("\r\n", "not an HTTP response; check the address of the stream"),
  ])
  func `a response without pictures fails once, with the reason`(_ head: String, _ words: String) {
    #expect(Self.reason(Self.events(head, Self.part(Self.small))) == words)
    #expect(Self.reason(Self.events((head.utf8 + Self.part(Self.small)).map { [$0] })) == words)
  }

  @Test func `headers, pictures and the data between them have a limit`() {
    let endless = [UInt8](repeating: 0x41, count: MotionJPEG.frameLimit + 1)
    #expect(
      Self.reason(Self.events("HTTP/1.0 200 OK\r\nX: ", endless)) == "not a camera: HTTP header is longer than 16384 bytes")
    #expect(
      Self.reason(Self.events(Self.head + "--frame\r\nX: ", endless))
        == "not a camera: HTTP header is longer than 16384 bytes")
    #expect(Self.reason(Self.events(Self.head, endless)) == "no picture within 4194304 bytes")
    let tooLong = "picture is larger than 4194304 bytes; choose a lower quality"
    #expect(Self.reason(Self.events(Self.head + "--frame\r\nContent-Length: 4194305\r\n\r\n")) == tooLong)
    #expect(Self.reason(Self.events(Self.head, Self.part(Self.cut + endless))) == tooLong)
    #expect(Self.reason(Self.events(Self.head, Self.part(endless))) == tooLong, "not a JPEG, without an end")
    let between = Self.events(Self.head, Self.part(Self.small) + endless)
    #expect(between == [.frame(Self.small), .failed("no picture within 4194304 bytes")])
    for nonsense in ["-1", "x", "99999999999999999999", "5 5", ""] {
      let head = "--frame\r\nContent-Length: \(nonsense)\r\n\r\n"
      #expect(Self.events(Self.head, Self.part(Self.small, head: head)) == [.frame(Self.small)], "no length: \(nonsense)")
    }
  }

  @Test func `randomly damaged streams fail or continue, and never yield more data than they contain`() {
    var state: UInt64 = 0x5EED
    func random(_ count: Int) -> Int {
      state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      return Int(state >> 33) % count
    }
    let stream =
      Array(Self.head.utf8) + Self.part(Self.picture) + Self.part(Self.small, head: "--frame\r\nContent-Length: 12\r\n\r\n")
      + Self.part(Self.picture)
    for _ in 0..<3000 {
      var spoilt = stream
      for _ in 0..<(1 + random(4)) {
        let place = random(spoilt.count)
        switch random(3) {
        case 0: spoilt[place] = UInt8(random(256))
        case 1: spoilt.removeSubrange(place..<min(spoilt.count, place + 1 + random(20)))
        default: spoilt.insert(contentsOf: stream[place % stream.count..<min(stream.count, place % stream.count + random(60))], at: place)
        }
      }
      let cut = random(spoilt.count)
      let events = Self.events([Array(spoilt[..<cut]), Array(spoilt[cut...])])
      #expect(events == Self.events(spoilt.map { [$0] }))
      var total = 0
      for (position, event) in events.enumerated() {
        switch event {
        case .frame(let frame):
          #expect(frame.starts(with: [0xFF, 0xD8]))
          total += frame.count
        case .failed(let words): #expect(position == events.count - 1 && !words.isEmpty && !words.contains("\n"))
        }
      }
      #expect(total <= spoilt.count)
    }
  }
}
