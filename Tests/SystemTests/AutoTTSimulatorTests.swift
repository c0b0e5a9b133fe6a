// `vehiclesim car` as a client meets it: two ports, one client for each program, a restart after Disconnect, and video over
// HTTP. What the car makes of frames is tested in virtual time; here are only sockets.

import CLinux
import Foundation
import Testing

extension WholeHouse {
  @Suite("The simulated RC car") struct AutoTTSimulatorTests {
    /// A car, and what it does so far.
    private struct Car {
      let house: House
      let program: Program
      let port: UInt16

      init(_ arguments: String...) throws {
        house = try House()
        let program = try Program(
          "\(House.programs)/vehiclesim", ["car", "--on", "tcp:127.0.0.1:0", "-v"] + arguments, in: house.directory)
        try #require(wait { program.printed.contains("\n") }, "the simulator says nothing: \(program.complaints)")
        self.program = program
        let link = program.printed.split(separator: "\n").first ?? ""
        port = try #require(link.split(separator: ":").last.flatMap { UInt16($0) })
      }

      var doings: [Substring] { program.complaints.split(separator: "\n").compactMap { $0.split(separator: "car: ", maxSplits: 1).last } }
      var motors: Substring? { doings.last { $0.hasPrefix("motors ") } }
      func has(done what: String) -> Bool { wait { doings.contains { $0 == what } } }
    }

    /// One end of a TCP connection.
    private final class Phone {
      private let file: Int32
      private(set) var heard = ""

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

      /// True at the end of what comes, however it ended.
      func listen() -> Bool {
        var buffer = [UInt8](repeating: 0, count: 4096)
        while true {
          let count = read(file, &buffer, buffer.count)
          if count <= 0 { return count == 0 || errno != EAGAIN }
          heard += String(decoding: buffer.prefix(count), as: UTF8.self)
        }
      }

      func hears(_ text: String) -> Bool {
        wait {
          _ = listen()
          return heard.contains(text)
        }
      }
    }

    @Test func itServesOneClient() throws {
      let car = try Car()
      let phone = try #require(Phone(car.port))
      #expect(phone.hears("Gyro#$#0.0166666666667%^%\r\n"))
      let other = try #require(Phone(car.port), "the kernel takes the second one")
      phone.say("Continue#$#%^%\r\nGyro#$# 0.400000; 0.200000; 0.000000%^%\r\n")
      #expect(car.has(done: "motors 52.93 21.68"))
      phone.say("Gyro#$# 0.400000; 0.000000; 0.000000%^%\r\nStatus#$#%^%\r\n")
      #expect(phone.hears("Free disk space"))
      #expect(!other.listen() && other.heard.isEmpty)
      #expect(car.motors == "motors 50.96 50.96" && !car.program.complaints.contains("client 2"))
    }

    @Test func anEndOfFileChangesNothing() throws {
      let car = try Car()
      do {
        let phone = try #require(Phone(car.port))
        #expect(phone.hears("Modes#$#"))
        phone.say("Continue#$#%^%\r\nGyro#$# 0.400000; 0.000000; 0.000000%^%\r\n")
        #expect(car.has(done: "motors 50.96 50.96"))
      }
      #expect(wait { car.program.complaints.contains("client 1: closed by the client") })
      let next = try #require(Phone(car.port))
      usleep(300_000)
      #expect(!next.listen() && next.heard.isEmpty && car.motors == "motors 50.96 50.96")
      #expect(car.program.end() == 0)
    }

    @Test func afterDisconnectANewProgramListens() throws {
      let car = try Car("--restart", "0.5")
      let phone = try #require(Phone(car.port))
      #expect(phone.hears("Modes#$#"))
      phone.say("Continue#$#%^%\r\nGyro#$# 0.400000; 0.000000; 0.000000%^%\r\n")
      #expect(car.has(done: "motors 50.96 50.96"))
      let other = try #require(Phone(car.port))
      phone.say("Disconnect#$#%^%\r\n")
      #expect(car.has(done: "motors 0.00 0.00"))
      #expect(wait { phone.listen() && other.listen() }, "whoever is connected is cut off")
      #expect(car.has(done: "a new program listens"))
      let next = try #require(Phone(car.port))
      #expect(next.hears("Gyro#$#"))
    }

    @Test func itsVideoIsBesideIt() throws {
      let car = try Car("--instant")
      let phone = try #require(Phone(car.port))
      #expect(phone.hears("Modes#$#"))
      func ask(_ path: String) throws -> Phone {
        let client = try #require(Phone(car.port + 1))
        client.say("GET \(path) HTTP/1.1\r\nHost: car\r\n\r\n")
        return client
      }
      let page = try ask("/")
      #expect(wait { page.listen() } && page.heard.contains("<img src=\"/video_feed\">"))
      let early = try ask("/video_feed")
      #expect(wait { early.listen() } && early.heard.hasSuffix("\r\n\r\n"))
      phone.say("VideoStream#$#On%^%\r\n")
      #expect(phone.hears("VideoStreamRefresh#$#%^%\r\n"))
      phone.say("Stop#$#%^%\r\n")
      #expect(car.has(done: "frame VideoStream On") && !phone.heard.contains("Started"))
      let watcher = try ask("/video_feed")
      #expect(watcher.hears("--frame\r\nContent-Type: image/jpeg\r\n\r\n"))
      #expect(phone.hears("VideoStreamStarted#$#") && car.has(done: "frame Stop"))
      #expect(car.doings.firstIndex(of: "stream on") ?? 0 < car.doings.firstIndex(of: "frame Stop") ?? 0)
    }
  }
}
