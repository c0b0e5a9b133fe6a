import Peers
import Protocols
import Testing

/// The simulated car's video: blocked commands, and valid JPEG pictures.
@Suite struct AutoTTCarVideoTests {
  private static let part = Array("--frame\r\nContent-Type: image/jpeg\r\n\r\n".utf8)
  private static let request = "GET /video_feed HTTP/1.1\r\nHost: car\r\n\r\n"

  private func watch(_ host: inout AutoTTCarHost, _ link: LinkName = "video") {
    host.give(.linkChanged(link, .up(maximumSend: nil)))
    host.send(Self.request, over: link)
  }

  /// The parts of the stream.
  private func parts(_ bytes: [UInt8]) -> [ArraySlice<UInt8>] {
    var starts = bytes.indices.dropLast(Self.part.count - 1).filter { bytes[$0] == 0x2D && bytes[$0...].starts(with: Self.part) }
    starts.append(bytes.count)
    return zip(starts, starts.dropFirst()).map { bytes[($0 + Self.part.count)..<$1] }
  }

  @Test func `switching video on blocks all commands until a picture is fetched`() throws {
    var host = try AutoTTCarHost.ready(driving: true)
    host.send(AutoTTCarHost.ahead)
    host.send("VideoStream#$#On%^%\r\nModes#$#%^%\r\n")
    host.pass(50 * .millisecond)
    host.send("Stop#$#%^%\r\n")
    host.pass(1900 * .millisecond)
    #expect(host.sentText.isEmpty && !host.car.isCameraOn)
    host.pass(3600 * .second)
    #expect(host.sentText == "VideoStreamRefresh#$#%^%\r\nVideoStreamRefresh#$#%^%\r\n" && host.car.isStreaming)
    #expect(host.motors == "50.96 50.96", "Stop is blocked, too")
    watch(&host)
    host.pass(100 * .millisecond)
    #expect(host.sent.dropFirst(2).first?.text.hasPrefix("VideoStreamStarted#$#%^%\r\nModes#$#") == true)
    #expect(host.motors == "0.00 0.00" && host.events.contains("camera on") && host.events.contains("stream on"))
  }

  @Test func `a video request ends at once while video is off, and hangs when video is switched off`() throws {
    var host = try AutoTTCarHost.ready()
    watch(&host)
    #expect(host.resets == ["video"])
    let head = String(decoding: host.video["video"] ?? [], as: UTF8.self)
    #expect(
      head.hasPrefix("HTTP/1.0 200 OK\r\n") && head.contains("multipart/x-mixed-replace; boundary=frame\r\n") && head.hasSuffix("\r\n\r\n"))
    host.send("VideoStream#$#On%^%\r\n")
    host.pass(.second)
    watch(&host, "early")
    #expect(host.resets.last == "early", "the camera takes two seconds")
    host.pass(2 * .second)
    watch(&host, "late")
    host.pass(.second)
    let count = host.video["late"]?.count ?? 0
    #expect(parts(host.video["late"] ?? []).count > 10)
    host.send("VideoStream#$#Off%^%\r\n")
    host.pass(10 * .second)
    #expect(host.video["late"]?.count == count && host.resets.last == "early" && !host.car.isCameraOn)
    host.send("VideoStream#$#On%^%\r\n")
    host.pass(3 * .second)
    #expect(host.video["late"]?.count ?? 0 > count)
    #expect(host.sentText.hasSuffix("VideoStreamStarted#$#%^%\r\n"))
  }

  @Test func `the web page links the stream, and other paths are rejected`() throws {
    var host = try AutoTTCarHost.ready()
    for (request, answer) in [
      ("GET / HTTP/1.0\r\n\r\n", "200"), ("GET /x HTTP/1.0\r\n\r\n", "404"), ("POST / HTTP/1.0\r\n\r\n", "405"), ("\r\n\r\n", "405"),
      (String(repeating: "x", count: 9000), "400"),
    ] {
      let link = LinkName(stringLiteral: "of-\(answer)-\(request.count)")
      host.give(.linkChanged(link, .up(maximumSend: nil)))
      for byte in request.utf8 { host.give(.received(link, [byte])) }
      let text = String(decoding: host.video[link] ?? [], as: UTF8.self)
      #expect(text.hasPrefix("HTTP/1.0 \(answer) ") && host.resets.last == link, "\(request.prefix(20))")
      #expect(answer != "200" || text.contains("<img src=\"/video_feed\">"))
    }
    host.give(.linkChanged("slow", .up(maximumSend: nil)))
    host.send("GET / HTTP/1.0\r\n", over: "slow")
    #expect(host.resets.last != "slow")
  }

  @Test(arguments: [("High", 760, 460), ("Medium", 568, 300), ("Low", 360, 240), (nil, 568, 300)] as [(String?, Int, Int)])
  func `pictures are complete, have the right size, and change`(_ quality: String?, _ width: Int, _ height: Int) throws {
    var host = try AutoTTCarHost.ready()
    if let quality { host.send("VideoQuality#$#\(quality)%^%\r\n") }
    #expect(host.sentText == (quality == nil ? "" : "VideoStreamRefresh#$#%^%\r\n"))
    host.send("VideoStream#$#On%^%\r\n")
    host.pass(3 * .second)
    watch(&host)
    host.pass(.second)
    let pictures = parts(host.video["video"] ?? []).map { $0.dropLast(4) }
    #expect(pictures.count > 10 && pictures.allSatisfy { $0.starts(with: [0xFF, 0xD8]) && $0.suffix(2).elementsEqual([0xFF, 0xD9]) })
    let first = try #require(GreyPicture(pictures[0]))
    #expect(first.width == width && first.height == height)
    #expect(first.blocks.count == ((width + 7) / 8) * ((height + 7) / 8))
    #expect(first.blocks.allSatisfy { (0...255).contains($0) } && Set(first.blocks).count > 8)
    #expect(try #require(GreyPicture(pictures[1])).blocks != first.blocks)
  }

  @Test func `a client that does not read its picture, or disconnects, keeps the car blocked`() throws {
    var host = try AutoTTCarHost.ready()
    host.unreadLink = "stuck"
    host.send("VideoStream#$#On%^%\r\n")
    host.pass(3 * .second)
    watch(&host, "stuck")
    host.pass(10 * .second)
    host.give(.linkChanged("stuck", .down("closed")))
    host.send("Stop#$#%^%\r\n")
    host.pass(.second)
    #expect(host.sent.last?.text == "VideoStreamRefresh#$#%^%\r\n" && !host.events.contains("frame Stop"))
    watch(&host)
    host.pass(.second)
    #expect(host.events.contains("frame Stop"))
  }

  @Test func `modes that detect signs switch the camera on, with a delay`() throws {
    var host = try AutoTTCarHost.ready()
    host.send("ChosenMode#$#6%^%\r\nContinue#$#%^%\r\n")
    host.pass(1900 * .millisecond)
    #expect(host.car.isStopped && !host.car.isCameraOn)
    host.pass(200 * .millisecond)
    #expect(!host.car.isStopped && host.car.isCameraOn)
    host.send("ChosenMode#$#0%^%\r\nContinue#$#%^%\r\n")
    #expect(!host.car.isStopped && !host.car.isCameraOn)
  }
}

/// The greys of a baseline JPEG with one component whose blocks have one grey each, decoded with its own tables.
private struct GreyPicture {
  var width = 0
  var height = 0
  var blocks: [Int] = []

  /// Nil if it is not such a picture, or is incomplete.
  init?(_ bytes: ArraySlice<UInt8>) {
    var rest = bytes
    guard rest.starts(with: [0xFF, 0xD8]), bytes.suffix(2).elementsEqual([0xFF, 0xD9]) else { return nil }
    rest = rest.dropFirst(2)
    var tables: [UInt8: [[Bool]: UInt8]] = [:]
    var step = 0
    while let marker = rest.dropFirst().first, rest.first == 0xFF, rest.count > 4 {
      let length = Int(rest[rest.startIndex + 2]) << 8 | Int(rest[rest.startIndex + 3])
      guard rest.count >= 2 + length else { return nil }
      let body = Array(rest.dropFirst(4).prefix(length - 2))
      rest = rest.dropFirst(2 + length)
      switch marker {
      case 0xDB: step = Int(body[1])
      case 0xC0:
        guard body[0] == 8, body[5] == 1, body[7] == 0x11 else { return nil }
        (height, width) = (Int(body[1]) << 8 | Int(body[2]), Int(body[3]) << 8 | Int(body[4]))
      case 0xC4: tables[body[0]] = GreyPicture.table(body.dropFirst())
      case 0xDA:
        guard let dc = tables[0x00], let ac = tables[0x10], readBlocks(rest.dropLast(2), dc, ac, step) else { return nil }
        return
      default: break
      }
    }
    return nil
  }

  private static func table(_ body: ArraySlice<UInt8>) -> [[Bool]: UInt8] {
    var (values, code, table) = (body.dropFirst(16), 0, [[Bool]: UInt8]())
    for (index, count) in body.prefix(16).enumerated() {
      for _ in 0..<count {
        table[(0...index).reversed().map { code >> $0 & 1 == 1 }] = values.popFirst()
        code += 1
      }
      code <<= 1
    }
    return table
  }

  private mutating func readBlocks(_ data: ArraySlice<UInt8>, _ dc: [[Bool]: UInt8], _ ac: [[Bool]: UInt8], _ step: Int) -> Bool {
    var bits: [Bool] = []
    var wasFull = false
    for byte in data {
      defer { wasFull = byte == 0xFF }
      // A zero after FF is no data; anything else there would be a marker.
      if wasFull {
        guard byte == 0 else { return false }
        continue
      }
      bits += (0..<8).reversed().map { byte >> $0 & 1 == 1 }
    }
    var position = 0
    func symbol(_ table: [[Bool]: UInt8]) -> UInt8? {
      for length in 1...16 where position + length <= bits.count {
        if let value = table[Array(bits[position..<(position + length)])] {
          position += length
          return value
        }
      }
      return nil
    }
    var level = 0
    for _ in 0..<(((width + 7) / 8) * ((height + 7) / 8)) {
      guard let length = symbol(dc).map(Int.init), position + length <= bits.count else { return false }
      let value = bits[position..<(position + length)].reduce(0) { $0 << 1 | ($1 ? 1 : 0) }
      position += length
      level += length > 0 && value < 1 << (length - 1) ? value - (1 << length) + 1 : value
      guard symbol(ac) == 0 else { return false }
      blocks.append(Int((Double(level * step) / 8).rounded()) + 128)
    }
    return bits.count - position < 8 && bits[position...].allSatisfy(\.self)
  }
}
