import Testing

@testable import Protocols

/// The camera: the car ignores commands until its first picture is fetched, so the machine fetches it before the car can be driven.
@Suite struct CarVideoTests {
  /// A complete picture: start, an empty quantisation table, one scan, end.
  private static let picture: [UInt8] = [0xFF, 0xD8, 0xFF, 0xFE, 0, 4, 1, 2, 0xFF, 0xDA, 0, 3, 0, 0x12, 0x34, 0xFF, 0xD9]
  static let response =
    Array(
      "HTTP/1.0 200 OK\r\nContent-Type: multipart/x-mixed-replace; boundary=frame\r\n\r\n--frame\r\nContent-Type: image/jpeg\r\n\r\n".utf8)
    + picture + [0x0D, 0x0A]

  private static func starting(_ options: [String: Value] = ["status-interval": .float(0)]) -> (CarRig, CommandID) {
    var rig = CarRig.ready(options)
    let id = rig.set("video", .bool(true))
    rig.run(for: 50 * .millisecond)
    return (rig, id)
  }

  @Test func `the command completes when the first picture is fetched`() {
    var (rig, id) = Self.starting()
    #expect(rig.messages().suffix(2) == ["VideoQuality#$#Medium", "VideoStream#$#On"] && rig.links == ["open tcp:car.local:12346"])
    #expect(rig.status == "starting-camera" && rig.absence("video") == "the camera is starting")
    rig.give(.linkChanged(.video, .up(maximumSend: nil)))
    #expect(rig.requests.count == 1 && rig.requests[0].hasPrefix("GET /video_feed HTTP/1.0\r\nHost: car.local:12346\r\n"))
    for byte in Self.response.dropLast(3) { rig.give(.received(.video, [byte])) }
    #expect(rig.results[id] == nil)
    for byte in Self.response.suffix(3) { rig.give(.received(.video, [byte])) }
    #expect(rig.isDone(id) && rig.links == ["open tcp:car.local:12346", "close"] && rig.text("video") == "on" && rig.status == "ready")
    rig.receive(CarVector.started + CarVector.refresh)
    let again = rig.set("video", .bool(true))
    let off = rig.set("video", .bool(false))
    rig.run(for: .second)
    #expect(rig.isDone(again) && rig.isDone(off) && rig.messages().last == "VideoStream#$#Off" && rig.text("video") == "off")
  }

  @Test func `a server that closes the connection is tried again`() {
    var (rig, id) = Self.starting()
    for round in 1...5 {
      rig.give(.linkChanged(.video, .up(maximumSend: nil)))
      if round % 2 == 0 { rig.give(.received(.video, Array("HTTP/1.0 404 NOT FOUND\r\n\r\n".utf8))) }
      rig.give(.linkChanged(.video, .down("the other side has hung up")))
      #expect(rig.links.last == "close" && rig.requests.count == round)
      rig.run(for: 499 * .millisecond)
      #expect(rig.links.last == "close")
      rig.run(for: .millisecond)
      #expect(rig.links.last == "open tcp:car.local:12346")
    }
    rig.give(.linkChanged(.video, .up(maximumSend: nil)))
    rig.give(.received(.video, Self.response))
    #expect(rig.isDone(id) && rig.progress[id]?.count == 1 && rig.progress[id]?[0].text?.contains("2 s") == true)
  }

  @Test func `after a timeout of the server the lease is refused until the car has responded twice`() {
    var (rig, id) = Self.starting()
    rig.respondsToModes = false
    let start = rig.now
    let mode = rig.set("mode", .string("2"))
    rig.run(for: 14_900 * .millisecond)
    #expect(rig.results[id] == nil && rig.progress[id]?.count == 7 && rig.requests.isEmpty && rig.links.count > 4)
    rig.run(for: .second)
    #expect(rig.code(mode) == "no-picture" && rig.number("mode-number") == 0)
    #expect(rig.error(id) == .timeout(milliseconds: 15_000) && rig.messages(since: start).suffix(2) == ["VideoStream#$#Off", "Modes#$#"])
    #expect(rig.links.last == "close" && rig.text("video") == nil && rig.fault?.contains("no picture from the camera") == true)
    rig.give(.leaseBegan(deadline: 300 * .millisecond))
    #expect(rig.lost.last?.contains("would ignore Stop") == true)
    rig.receive(CarVector.modes)
    rig.give(.leaseBegan(deadline: 300 * .millisecond))
    #expect(rig.lost.count == 2 && rig.fault != nil, "the response can be older than the command that the car has not read")
    rig.respondsToModes = true
    rig.run(for: 7 * .second)
    rig.give(.leaseBegan(deadline: 300 * .millisecond))
    #expect(rig.lost.count == 2 && rig.fault == nil && rig.text("video") == "off")
  }

  @Test func `while the camera starts, only Stop is sent`() {
    var (rig, id) = Self.starting(["status-interval": .float(2)])
    let start = rig.now
    rig.give(.leaseBegan(deadline: 300 * .millisecond))
    #expect(rig.lost == ["the camera is starting, and the car would ignore Stop: wait until it has started"])
    let mode = rig.set("mode", .string("2"))
    let twice = rig.set("video", .bool(true))
    let off = rig.set("video", .bool(false))
    let stop = rig.act(.stop)
    rig.run(for: 5 * .second)
    #expect(rig.code(twice) == "busy" && rig.isDone(stop) && rig.results[mode] == nil && rig.results[off] == nil)
    #expect(rig.messages(since: start + .millisecond).allSatisfy { ["Stop#$#", "Modes#$#"].contains($0) })
    rig.give(.linkChanged(.video, .up(maximumSend: nil)))
    rig.give(.received(.video, Self.response))
    rig.run(for: .second)
    #expect(rig.isDone(id) && rig.isDone(mode) && rig.isDone(off) && rig.text("video") == "off")
  }

  @Test func `the lease is refused as soon as the camera start is queued`() {
    var rig = CarRig.ready()
    _ = rig.set("video", .bool(true))
    rig.give(.leaseBegan(deadline: 300 * .millisecond))
    #expect(rig.lost.count == 1)
    rig = CarRig.driving()
    let id = rig.set("video", .bool(true))
    rig.run(for: 100 * .millisecond)
    #expect(rig.code(id) == "driving" && !rig.types().contains("VideoStream"))
    // Switching it off does not occupy the car.
    let off = rig.set("video", .bool(false))
    rig.drive(for: 500 * .millisecond)
    #expect(rig.isDone(off))
  }

  @Test func `the camera start continues if its caller disconnects`() {
    var (rig, id) = Self.starting()
    rig.give(.cancelled(id))
    rig.run(for: 100 * .millisecond)
    rig.give(.linkChanged(.video, .up(maximumSend: nil)))
    rig.give(.received(.video, Self.response))
    #expect(rig.results[id] == nil && rig.text("video") == "on")
  }

  @Test func `a lost link ends the camera start`() {
    var (rig, id) = Self.starting()
    rig.disconnect()
    #expect(rig.error(id) == .notConnected("gone") && rig.links.last == "close")
    rig.connect()
    #expect(rig.absence("video") == "the car has not responded yet")
    (rig, id) = Self.starting()
    rig.give(.stopping)
    rig.run(for: 2 * .second)
    #expect(rig.stopped != nil && rig.links.last == "close" && rig.results[id]?.count == 1)
  }

  @Test func `without a host the camera is not started`() {
    for link in [nil, "replay:/tmp/ride.ndjson", "tcp:car.local:65535", "serial:/dev/ttyUSB0"] {
      var rig = CarRig.ready(link: link)
      let id = rig.set("video", .bool(true))
      #expect(rig.code(id) == "no-host" && rig.absence("video-url") != nil && rig.absence("web-page") != nil)
    }
  }

  @Test(arguments: [
    ("tcp:192.168.0.20:12345", "192.168.0.20:12346"), ("tcp:[::1]:1", "[::1]:2"),
    ("tcp:[fe80::1%25wlan0]:12345", "[fe80::1%25wlan0]:12346"),
    ("tcp:car.local:65534", "car.local:65535"),
  ]) func `the camera's server is on the next port`(_ link: String, _ place: String) {
    var rig = CarRig.ready(link: link)
    #expect(rig.text("video-url") == "http://\(place)/video_feed" && rig.text("web-page") == "http://\(place)/")
    _ = rig.set("video", .bool(true))
    rig.run(for: 100 * .millisecond)
    #expect(rig.links.first == "open tcp:\(place)")
  }

  @Test(arguments: ["tcp:", "tcp::1", "tcp:host", "tcp:host:0", "tcp:a:b:1", "tcp:[::1]", "tcp:ho st:1", "tcp:host:x", "tcp:host/x:1"])
  func `other URLs have no endpoint`(_ link: String) { #expect(CarEndpoint(link) == nil) }

  @Test func `in the documented dialect no picture is fetched`() {
    var (rig, id) = Self.starting(["dialect": .string("documented"), "status-interval": .float(0)])
    #expect(rig.isDone(id) && rig.links.isEmpty && rig.text("video") == "on" && rig.writes.last?.text == "VideoStream#$#On%^%")
    _ = rig.set("video-quality", .string("high"))
    _ = rig.set("video", .bool(false))
    rig.run(for: .second)
    _ = rig.set("video", .bool(true))
    rig.run(for: .second)
    #expect(rig.messages().suffix(3) == ["VideoStream#$#Off", "VideoQuality#$#High", "VideoStream#$#On"])
  }
}
