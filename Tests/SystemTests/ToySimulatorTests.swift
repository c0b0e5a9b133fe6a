// `vehiclesim toy`, which connects to a phone and a web server that are sockets of the test. Its protocol is tested in virtual time;
// these tests cover connections, the card's folder and the command line.

import CLinux
import Foundation
import Testing

extension EndToEnd {
  @Suite("The simulated Trivia toy") struct ToySimulatorTests {
    /// A socket that listens on the loopback.
    private final class Place {
      private let file: Int32
      let port: UInt16
      var url: String { "tcp:127.0.0.1:\(port)" }

      init() throws {
        file = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let file = file
        let listens = withUnsafeMutablePointer(to: &address) {
          $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
            bind(file, $0, length) == 0 && listen(file, 8) == 0 && getsockname(file, $0, &length) == 0
          }
        }
        port = UInt16(bigEndian: address.sin_port)
        try #require(listens)
      }

      deinit { close(file) }

      /// The first client that connects within 10 s.
      func visitor() throws -> Visitor {
        var client: Int32 = -1
        _ = wait {
          client = accept(file, nil, nil)
          return client >= 0
        }
        return Visitor(try #require(client >= 0 ? client : nil, "no client connected"))
      }
    }

    /// One connection, from the listener's end.
    private final class Visitor {
      private let file: Int32
      private(set) var received: [UInt8] = []
      /// How it ended: 0 orderly, else errno.
      private(set) var ending: Int32?

      init(_ file: Int32) {
        self.file = file
        _ = fcntl(file, F_SETFD, FD_CLOEXEC)
        _ = fcntl(file, F_SETFL, O_NONBLOCK)
      }

      deinit { close(file) }

      var text: String { String(decoding: received, as: UTF8.self) }

      func say(_ text: String) { _ = text.withCString { send(file, $0, strlen($0), Int32(MSG_NOSIGNAL)) } }

      func listen() {
        var buffer = [UInt8](repeating: 0, count: 4096)
        while ending == nil {
          let count = read(file, &buffer, buffer.count)
          if count > 0 {
            received += buffer.prefix(count)
          } else if count == 0 {
            ending = 0
          } else if errno == EAGAIN {
            return
          } else {
            ending = errno
          }
        }
      }

      func receives(_ text: String) -> Bool {
        wait {
          listen()
          return self.text.contains(text)
        }
      }

      func ends() -> Bool {
        wait {
          listen()
          return ending != nil
        }
      }
    }

    private func toy(_ rig: Rig, _ arguments: String...) throws -> Program {
      let program = try rig.start("vehiclesim", ["toy", "--instant", "-v"] + arguments)
      try #require(wait { program.stdout.contains("\n") }, "the simulator prints nothing: \(program.stderr)")
      return program
    }

    /// The phone's part, the settling included.
    private func provide(_ toy: Program, _ phone: Visitor, _ credentials: String) {
      phone.say("ok")
      #expect(phone.receives("ok"))
      #expect(wait { toy.stderr.contains("waiting for credentials") })
      phone.say(credentials)
    }

    @Test func `a phone sets it up, and after a power cycle it fetches facts`() throws {
      let rig = try Rig()
      let (phone, server) = (try Place(), try Place())
      let card = "\(rig.directory)/card"
      let arguments = [
        "--phone", phone.url, "--server", server.url, "--card", card, "--network", "HomeNet", "--network-password", "pa:ss word",
      ]
      let first = try rig.start("vehiclesim", ["toy", "--instant", "-v"] + arguments)
      let visitor = try phone.visitor()
      provide(first, visitor, "18:HomeNet:pa:ss word")
      #expect(visitor.ends() && visitor.ending == 0 && visitor.text == "ok")
      #expect(wait { first.stderr.contains("LED green: online") }, "\(first.stderr)")
      #expect(first.stdout == "\(phone.url)\n")
      #expect(first.end() == 0)
      let attributes = try FileManager.default.attributesOfItem(atPath: card)
      #expect(attributes[.posixPermissions] as? Int == 0o700)
      #expect(try String(contentsOfFile: "\(card)/u.txt", encoding: .utf8) == "18")

      let second = try rig.start("vehiclesim", ["toy", "--instant", "-v", "--no-press", "--throw", "0.5"] + arguments)
      let fetch = try server.visitor()
      #expect(fetch.receives("\r\n\r\n"))
      #expect(fetch.text == "GET /Trivia/18  HTTP/1.1\r\nHost: triviotoy.azurewebsites.net\r\nConnection: keep-alive\r\n\r\n")
      fetch.say("HTTP/1.1 200 OK\r\nContent-Length: 21\r\n\r\n\"Honey never spoils.\"")
      #expect(fetch.ends() && fetch.ending == 0)
      let report = try server.visitor()
      #expect(report.receives("\r\n\r\n") && report.text.hasPrefix("GET /User/History/18/1 HTTP/1.1\r\n"))
      #expect(wait { second.stderr.contains("stored fact 0: Honey never spoils.") })
      #expect(second.end() == 0)
      #expect(try String(contentsOfFile: "\(card)/0.txt", encoding: .utf8) == "Honey never spoils.")
    }

    @Test func `it waits for a late phone and closes on a wrong greeting`() throws {
      let rig = try Rig()
      var closed: Place? = try Place()
      let url = try #require(closed).url
      closed = nil
      let waiting = try toy(rig, "--phone", url)
      #expect(wait { waiting.stderr.contains("cannot reach \(url): Connection refused") })
      waiting.end()
      let phone = try Place()
      let program = try toy(rig, "--phone", phone.url)
      let wrong = try phone.visitor()
      wrong.say("OK")
      #expect(wrong.ends() && wrong.received.isEmpty)
      let right = try phone.visitor()
      provide(program, right, "18:Home:password")
      #expect(right.ends() && wait { program.stderr.contains("LED pink") })
    }

    @Test func `faults act on the connection`() throws {
      let rig = try Rig()
      let phone = try Place()
      let cut = try toy(rig, "--phone", phone.url, "--fault", "reset", "--fault", "redial:1")
      let left = try phone.visitor()
      left.say("ok")
      #expect(left.ends() && left.ending == 0 && left.text == "ok")
      let again = try phone.visitor()
      provide(cut, again, "18:Home:password")
      #expect(again.ends() && again.ending == ECONNRESET)
      #expect(wait { cut.stderr.contains("LED green") })
      cut.end()
      let talker = try toy(rig, "--phone", phone.url, "--fault", "yes")
      let told = try phone.visitor()
      provide(talker, told, "18:Home:password")
      #expect(told.receives("okyes") && told.ends() && talker.isRunning)
    }

    @Test func `in the documented dialect the phone connects to it`() throws {
      let rig = try Rig()
      let program = try toy(rig, "--documented", "--on", "tcp:127.0.0.1:0")
      let port = try #require(program.stdout.split(separator: "\n").first?.split(separator: ":").last.flatMap { UInt16($0) })
      let connected = connection(to: port)
      let phone = Visitor(try #require(connected))
      provide(program, phone, "18:Home:password")
      #expect(phone.ends() && phone.text == "ok" && wait { program.stderr.contains("LED green") })
      #expect(connection(to: port) == nil, "its Wi-Fi network is off")
    }

    /// A connection to the loopback as soon as the port listens, or nil after 2 s.
    private func connection(to port: UInt16) -> Int32? {
      var address = sockaddr_in()
      address.sin_family = sa_family_t(AF_INET)
      address.sin_port = port.bigEndian
      address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
      var file: Int32 = -1
      let isThere = wait(seconds: 2) {
        file = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        let result = withUnsafeMutablePointer(to: &address) {
          $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { connect(file, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) }
        }
        if result != 0 { close(file) }
        return result == 0
      }
      return isThere ? file : nil
    }

    @Test(arguments: [
      (["--on", "tcp:127.0.0.1:0"], "--on needs --documented"), (["--phone", "pty"], "needs TCP endpoints"),
      (["--press", "1", "--joined"], "cannot be combined"),
      (["--network-password", "x"], "needs --network"), (["--fault", "hang"], "unknown fault"), (["--throw", "0"], "choose 0.1"),
    ]) func `invalid options are rejected`(_ arguments: [String], _ words: String) throws {
      let rig = try Rig()
      let outcome = rig.run("\(Rig.programs)/vehiclesim", ["toy"] + arguments)
      #expect(outcome.status == 2 && outcome.errors.contains(words), "\(outcome.errors)")
    }
  }
}
