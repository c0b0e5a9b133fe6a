// `vehiclesim rc-car` over sockets: two ports, one client at a time, a restart after Disconnect, and video over HTTP. Frames are
// tested in virtual time.

import CLinux
import Foundation
import Testing

extension EndToEnd {
  @Suite("The simulated RC car") struct AutoTTSimulatorTests {
    /// A simulated car and its log.
    private struct Car {
      let rig: Rig
      let program: Program
      let port: UInt16

      init(_ arguments: String...) throws {
        rig = try Rig()
        let program = try Program(
          "\(Rig.programs)/vehiclesim", ["rc-car", "--on", "tcp:127.0.0.1:0", "-v"] + arguments, in: rig.directory)
        try #require(wait { program.stdout.contains("\n") }, "the simulator prints nothing: \(program.stderr)")
        self.program = program
        let link = program.stdout.split(separator: "\n").first ?? ""
        port = try #require(link.split(separator: ":").last.flatMap { UInt16($0) })
      }

      var doings: [Substring] { program.stderr.split(separator: "\n").compactMap { $0.split(separator: "car: ", maxSplits: 1).last } }
      var motors: Substring? { doings.last { $0.hasPrefix("motors ") } }
      func has(done what: String) -> Bool { wait { doings.contains { $0 == what } } }
    }

    /// One end of a TCP connection.
    private final class Phone {
      private let file: Int32
      private(set) var received = ""

      init?(_ port: UInt16) {
        file = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        let result = withUnsafeMutablePointer(to: &address) {
          $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { connect(file, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) }
        }
        if result != 0 { return nil }
        _ = fcntl(file, F_SETFL, O_NONBLOCK)
      }

      deinit { close(file) }

      func say(_ text: String) { _ = text.withCString { write(file, $0, strlen($0)) } }

      /// True once the connection has ended in any way.
      func listen() -> Bool {
        var buffer = [UInt8](repeating: 0, count: 4096)
        while true {
          let count = read(file, &buffer, buffer.count)
          if count <= 0 { return count == 0 || errno != EAGAIN }
          received += String(decoding: buffer.prefix(count), as: UTF8.self)
        }
      }

      func receives(_ text: String) -> Bool {
        wait {
          _ = listen()
          return received.contains(text)
        }
      }
    }

    @Test func `it serves one client at a time`() throws {
      let car = try Car()
      let phone = try #require(Phone(car.port))
      #expect(phone.receives("Gyro#$#0.0166666666667%^%\r\n"))
      let other = try #require(Phone(car.port), "the kernel accepts the second connection")
      phone.say("Continue#$#%^%\r\nGyro#$# 0.400000; 0.200000; 0.000000%^%\r\n")
      #expect(car.has(done: "motors 52.93 21.68"))
      phone.say("Gyro#$# 0.400000; 0.000000; 0.000000%^%\r\nStatus#$#%^%\r\n")
      #expect(phone.receives("Free disk space"))
      #expect(!other.listen() && other.received.isEmpty)
      #expect(car.motors == "motors 50.96 50.96" && !car.program.stderr.contains("client 2"))
    }

    @Test func `a disconnect does not stop the car`() throws {
      let car = try Car()
      do {
        let phone = try #require(Phone(car.port))
        #expect(phone.receives("Modes#$#"))
        phone.say("Continue#$#%^%\r\nGyro#$# 0.400000; 0.000000; 0.000000%^%\r\n")
        #expect(car.has(done: "motors 50.96 50.96"))
      }
      #expect(wait { car.program.stderr.contains("client 1: closed by the client") })
      let next = try #require(Phone(car.port))
      usleep(300_000)
      #expect(!next.listen() && next.received.isEmpty && car.motors == "motors 50.96 50.96")
      #expect(car.program.end() == 0)
    }

    @Test func `a Disconnect frame restarts the program, which listens again`() throws {
      let car = try Car("--restart", "0.5")
      let phone = try #require(Phone(car.port))
      #expect(phone.receives("Modes#$#"))
      phone.say("Continue#$#%^%\r\nGyro#$# 0.400000; 0.000000; 0.000000%^%\r\n")
      #expect(car.has(done: "motors 50.96 50.96"))
      let other = try #require(Phone(car.port))
      phone.say("Disconnect#$#%^%\r\n")
      #expect(car.has(done: "motors 0.00 0.00"))
      #expect(wait { phone.listen() && other.listen() }, "all clients are disconnected")
      #expect(car.has(done: "a new program is listening"))
      let next = try #require(Phone(car.port))
      #expect(next.receives("Gyro#$#"))
    }

    @Test func `video is served on the next port`() throws {
      let car = try Car("--instant")
      let phone = try #require(Phone(car.port))
      #expect(phone.receives("Modes#$#"))
      func ask(_ path: String) throws -> Phone {
        let client = try #require(Phone(car.port + 1))
        client.say("GET \(path) HTTP/1.1\r\nHost: car\r\n\r\n")
        return client
      }
      let page = try ask("/")
      #expect(wait { page.listen() } && page.received.contains("<img src=\"/video_feed\">"))
      let early = try ask("/video_feed")
      #expect(wait { early.listen() } && early.received.hasSuffix("\r\n\r\n"))
      phone.say("VideoStream#$#On%^%\r\n")
      #expect(phone.receives("VideoStreamRefresh#$#%^%\r\n"))
      phone.say("Stop#$#%^%\r\n")
      #expect(car.has(done: "frame VideoStream On") && !phone.received.contains("Started"))
      let watcher = try ask("/video_feed")
      #expect(watcher.receives("--frame\r\nContent-Type: image/jpeg\r\n\r\n"))
      #expect(phone.receives("VideoStreamStarted#$#") && car.has(done: "frame Stop"))
      #expect(car.doings.firstIndex(of: "stream on") ?? 0 < car.doings.firstIndex(of: "frame Stop") ?? 0)
    }
  }
}
