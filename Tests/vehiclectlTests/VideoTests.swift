// Camera pictures into files: the URL from a daemon, the stream from a server on the loopback.

import Glibc
import Protocols
import Testing
import Varlink

@testable import vehiclectl

@Suite struct VideoTests {
  static let picture: [UInt8] = [0xFF, 0xD8, 0xFF, 0xDA, 0, 3, 0, 0x55, 0x0A, 0xFF, 0xD9]

  static func stream(_ count: Int) -> [UInt8] {
    Array("HTTP/1.0 200 OK\r\nContent-Type: multipart/x-mixed-replace; boundary=frame\r\n\r\n".utf8)
      + (0..<count).flatMap { _ in Array("--frame\r\nContent-Type: image/jpeg\r\n\r\n".utf8) + picture + Array("\r\n\r\n".utf8) }
  }

  func failure(_ body: () throws -> Void) -> Failure? {
    do { try body() } catch { return error as? Failure }
    return nil
  }

  /// A directory of its own, and what is in it at the end.
  func inDirectory(_ body: (String) throws -> Void) throws -> [String] {
    let directory = "/tmp/vehiclectl-video-\(getpid())-\(UInt64.random(in: 0 ... .max))"
    #expect(mkdir(directory, 0o700) == 0)
    try body(directory)
    var names: [String] = []
    let open = try #require(opendir(directory))
    while let entry = readdir(open) {
      let name = withUnsafeBytes(of: entry.pointee.d_name) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
      if name != ".", name != ".." { names.append(name) }
    }
    closedir(open)
    for name in names { unlink("\(directory)/\(name)") }
    rmdir(directory)
    return names.sorted()
  }

  func contents(_ path: String) -> [UInt8] {
    let descriptor = open(path, O_RDONLY)
    defer { close(descriptor) }
    var bytes = [UInt8](repeating: 0, count: 100_000)
    return Array(bytes[..<max(0, read(descriptor, &bytes, bytes.count))])
  }

  /// A daemon with these devices and the URL of their stream.
  func daemon(_ devices: [String] = ["rover"], url: Value?, video: Bool? = true) throws -> SocketServer {
    let properties = [Property("video-url", .string, help: ""), Property("web-page", .string, help: "")]
    let toggle = video == nil ? [] : [Property("video", .bool, access: .write, help: "")]
    return try SocketServer { method, parameters in
      switch method {
      case Contract.Describe.name:
        let schemas = devices.map { Contract.Schema(device: $0, kind: "rc-car", Schema(properties: properties + toggle)) }
        return .send(VarlinkReply.message(Contract.Describe.Result(schemas: schemas)))
      case Contract.Status.name: return .send(VarlinkReply.message(Contract.Status.Result(devices: [])))
      default:
        guard case .array(let names)? = parameters["references"], let name = names.first?.string?.split(separator: ".").last else {
          return .sendAndClose([])
        }
        let value = name == "video" ? video.map { Value.bool($0) } : url
        let reading = Contract.Reading(device: devices[0], property: String(name), value: value, reason: value == nil ? "link down" : nil)
        return .send(VarlinkReply.message(Contract.Get.Result(readings: [reading])))
      }
    }
  }

  func run(_ server: SocketServer, _ arguments: String...) throws {
    let options = ["-q", "--socket", server.path, "--timeout", "10"]
    var command = try #require(try VehicleCtl.command(of: arguments + options) as? any Subcommand)
    try command.perform(Output(command.common))
  }

  @Test func `URLs are parsed`() throws {
    let plain = try VideoURL("http://car:12346/video_feed?a=b#c")
    #expect(plain.host == "car" && plain.port == "12346" && plain.path == "/video_feed?a=b" && plain.authority == "car:12346")
    let bare = try VideoURL("HTTP://192.168.1.2")
    #expect(bare.host == "192.168.1.2" && bare.port == "80" && bare.path == "/")
    let six = try VideoURL("http://[fe80::1]:81?x")
    #expect(six.host == "fe80::1" && six.port == "81" && six.path == "/?x" && six.authority == "[fe80::1]:81")
    #expect(try VideoURL("http://[::1]/a").port == "80")
    for (text, words) in [
      ("https://car/", "https://car/: HTTPS is not supported"), ("http://me:secret@car/", "user names in URLs are not supported"),
      ("rtsp://car/", "invalid stream URL"),
      ("car:12346/x", "invalid stream URL"),
      ("http://", "invalid stream URL"), ("http://:80/", "invalid stream URL"), ("", "invalid stream URL"),
      ("http://car:0/", "invalid stream URL"), ("http://car:65536/", "invalid stream URL"), ("http://car:x/", "invalid stream URL"),
      ("http://[::1]x/", "invalid stream URL"),
    ] {
      let refused = failure { _ = try VideoURL(text) }
      #expect(refused?.exitCode == 1 && refused?.message.contains(words) == true, "\(text)")
    }
  }

  @Test func `a snapshot is the first complete picture and does not overwrite without --force`() throws {
    let camera = try HTTPServer(Self.stream(3), closes: false)
    let server = try daemon(url: .string("http://127.0.0.1:\(camera.port)/video_feed?q=1"))
    defer {
      camera.stop()
      server.stop()
    }
    let left = try inDirectory { directory in
      let file = "\(directory)/a.jpg"
      try run(server, "camera", "snapshot", file)
      #expect(contents(file) == Self.picture)
      #expect(camera.request.hasPrefix("GET /video_feed?q=1 HTTP/1.0\r\nHost: 127.0.0.1:\(camera.port)\r\n"))
      let refused = failure { try run(server, "camera", "snapshot", "rover", file) }
      #expect(refused?.exitCode == 2 && refused?.message.contains("use --force to overwrite it") == true)
      close(open(file, O_WRONLY | O_TRUNC))
      try run(server, "camera", "snapshot", "rover", file, "--force")
      #expect(contents(file) == Self.picture)
      try run(server, "camera", "snapshot", "/dev/null", "--force")
      var state = stat()
      #expect(stat("/dev/null", &state) == 0 && state.st_mode & S_IFMT == S_IFCHR, "what is no file is not replaced by one")
      #expect(failure { try run(server, "camera", "snapshot", "\(directory)/none/b.jpg") }?.message.contains("cannot write") == true)
    }
    #expect(left == ["a.jpg"])
  }

  @Test func `a failed snapshot leaves no file`() throws {
    for (answer, words) in [
      ([], "ended the stream; check that the video is on"), (Self.stream(0), "ended the stream; check that the video is on"),
      (Self.stream(1).dropLast(8), "ended the stream"),
      (Array("HTTP/1.0 404 NOT FOUND\r\n\r\n".utf8), "the camera returned \"404 NOT FOUND\""),
    ] as [([UInt8], String)] {
      let camera = try HTTPServer(answer)
      let server = try daemon(url: .string("http://localhost:\(camera.port)/"), video: nil)
      let left = try inDirectory { directory in
        let failed = failure { try run(server, "camera", "snapshot", "\(directory)/a.jpg") }
        #expect(failed?.exitCode == 1 && failed?.message.contains(words) == true, "\(String(describing: failed))")
      }
      #expect(left.isEmpty)
      camera.stop()
      server.stop()
    }
  }

  @Test func `a missing picture is an error with its remedy`() throws {
    let mute = try HTTPServer([], closes: false)
    defer { mute.stop() }
    for (devices, url, video, words, code) in [
      (["rover"], .string("http://127.0.0.1:1/"), false, "the video is off; switch it on: vehiclectl set rover.video on", 1),
      (["rover"], .string("http://127.0.0.1:1/"), true, "cannot connect to the camera at 127.0.0.1:1: Connection refused", 1),
      (["rover"], .string("https://127.0.0.1/"), true, "HTTPS is not supported", 1),
      (["rover"], nil, true, "rover.video-url has no value: link down", 1),
      (["rover", "truck"], .string("http://127.0.0.1:1/"), true, "rover.video-url, truck.video-url", 2),
    ] as [([String], Value?, Bool, String, Int32)] {
      let server = try daemon(devices, url: url, video: video)
      let failed = failure { try run(server, "camera", "snapshot", "/tmp/never-\(getpid()).jpg") }
      #expect(failed?.exitCode == code && failed?.message.contains(words) == true, "\(String(describing: failed))")
      server.stop()
    }
    let url = try VideoURL("http://127.0.0.1:\(mute.port)/")
    let nothing = try VideoStream(url, within: 5).next(within: 0.05)
    #expect(nothing == nil)
  }

  @Test func `a recording has all pictures, an interrupted one is kept`() throws {
    let camera = try HTTPServer(Self.stream(40))
    let server = try daemon(url: .string("http://127.0.0.1:\(camera.port)/video_feed"))
    defer {
      camera.stop()
      server.stop()
    }
    let left = try inDirectory { directory in
      let failed = failure { try run(server, "camera", "record", "\(directory)/a.mjpg", "--seconds", "60") }
      #expect(failed?.message.contains("ended the stream") == true)
      #expect(contents("\(directory)/a.mjpg") == (0..<40).flatMap { _ in Self.picture })
      #expect(failure { try run(server, "camera", "record", "\(directory)/a.mjpg") }?.exitCode == 2)
    }
    #expect(left == ["a.mjpg"])
  }

  @Test func `pictures before an error of the stream are returned first`() throws {
    let camera = try HTTPServer(Self.stream(2) + Array("--frame\r\nContent-Length: 99999999\r\n\r\n".utf8), closes: false)
    defer { camera.stop() }
    let stream = try VideoStream(try VideoURL("http://127.0.0.1:\(camera.port)/"), within: 5)
    #expect(try stream.next(within: 5) == Self.picture)
    #expect(try stream.next(within: 5) == Self.picture)
    #expect(failure { _ = try stream.next(within: 5) }?.message.contains("picture is larger than") == true)
  }

  @Test(arguments: [(1, 500, 0.0, "1 picture, 0.5 kB in 0.0 s"), (121, 4_300_000, 8.0, "121 pictures, 4.3 MB in 8.0 s, 15.0 pictures/s")])
  func `a recording has a summary`(_ frames: Int, _ bytes: Int, _ seconds: Double, _ words: String) {
    #expect(CameraRecordCommand.summary(frames, bytes, seconds) == words)
  }

  @Test func `an unknown web page is an error with the reason`() throws {
    let server = try daemon(url: nil)
    defer { server.stop() }
    let failed = failure { try run(server, "web-page") }
    #expect(failed?.message.hasPrefix("rover.web-page has no value: link down") == true && failed?.exitCode == 1)
    #expect(failure { try run(server, "web-page", "truck") } == .rejected(.noSuchProperty(device: "truck", property: "web-page")))
  }
}
