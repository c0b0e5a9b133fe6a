// One client of the car's video server. If the video is off when the request arrives, the connection is closed after the header of the
// reply; if the video is switched off later, the connection stays open without data. Parts have no Content-Length, and no boundary ends the
// last one:
//   --frame CR LF Content-Type: image/jpeg CR LF CR LF JPEG CR LF CR LF
// Source: Cameras.py of task123/AutoTT, under Flask.

import Protocols

/// An HTTP/1.0 connection of a video client.
struct CarFeed: Sendable {
  /// Pictures per second.
  static let rate: Int64 = 15
  private static let maxRequestLength = 8192
  private static let endOfHeader = Array("\r\n\r\n".utf8)

  private enum State { case reading([UInt8]), streaming(next: Instant), ending }
  private var state = State.reading([])
  /// Bytes for the next send.
  private var pending: [UInt8] = []
  /// The send in flight, and whether it completes a picture.
  private var sending: (id: SendID, isPicture: Bool)?

  /// The next action of the connection.
  enum Action { case nothing, send([UInt8]), close }

  /// When `next` must be called again, or nil if only the next input requires a call.
  func nextDue(isStreaming: Bool) -> Instant? {
    guard isStreaming, sending == nil, case .streaming(let next) = state else { return nil }
    return next
  }

  /// Handles bytes of the request.
  mutating func receive(_ bytes: [UInt8], isStreaming: Bool, at now: Instant) {
    guard case .reading(var request) = state else { return }
    request += bytes.prefix(CarFeed.maxRequestLength - request.count)
    state = .reading(request)
    let unscanned = request.suffix(bytes.count + CarFeed.endOfHeader.count - 1)
    guard unscanned.position(of: CarFeed.endOfHeader) != nil || unscanned.position(of: [0x0A, 0x0A]) != nil else {
      if request.count == CarFeed.maxRequestLength { reply("400 Bad Request", "too long") }
      return
    }
    let words = String(decoding: request.prefix { $0 != 0x0D && $0 != 0x0A }, as: UTF8.self).split(separator: " ")
    guard words.count >= 2, words[0] == "GET" else { return reply("405 Method Not Allowed", "only GET") }
    switch words[1].prefix(while: { $0 != "?" }) {
    case "/": reply("200 OK", "<html>\n<body><img src=\"/video_feed\"></body>\n</html>\n")
    case "/video_feed":
      pending = header("200 OK", "multipart/x-mixed-replace; boundary=frame")
      state = isStreaming ? .streaming(next: now) : .ending
    default: reply("404 Not Found", "there are / and /video_feed")
    }
  }

  private mutating func reply(_ status: String, _ body: String) {
    pending = header(status, "text/html; charset=utf-8", "Content-Length: \(body.utf8.count)\r\n") + Array(body.utf8)
    state = .ending
  }

  private func header(_ status: String, _ type: String, _ more: String = "") -> [UInt8] {
    Array("HTTP/1.0 \(status)\r\nContent-Type: \(type)\r\n\(more)Server: AutoTT\r\nConnection: close\r\n\r\n".utf8)
  }

  /// Returns the next action. `picture` is called when a picture is due.
  mutating func next(_ id: SendID, isStreaming: Bool, at now: Instant, picture: () -> [UInt8]) -> Action {
    guard sending == nil else { return .nothing }
    var isPicture = false
    var bytes = pending
    if bytes.isEmpty {
      if case .ending = state { return .close }
      guard isStreaming, case .streaming(let next) = state, now >= next else { return .nothing }
      isPicture = true
      bytes = Array("--frame\r\nContent-Type: image/jpeg\r\n\r\n".utf8) + picture() + CarFeed.endOfHeader
      state = .streaming(next: now + .second / CarFeed.rate)
    }
    pending = []
    sending = (id, isPicture)
    return .send(bytes)
  }

  /// Completes a send. Returns true if it belongs to this connection and completes a picture.
  mutating func sent(_ id: SendID) -> Bool {
    guard let sending, sending.id == id else { return false }
    self.sending = nil
    return sending.isPicture
  }
}
