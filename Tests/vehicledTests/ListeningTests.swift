// Listening links: accepted and rejected peers, and ports in use.

import CLinux
import Glibc
import Protocols
import Testing

@testable import vehicled

@Suite @Loop struct ListeningTests {
  /// A device that listens when started, and the inputs of its machine.
  @Loop private final class Rig {
    let probe = Probe()
    let device: Device
    let port: Int
    /// The link's changes.
    var changes: [String] {
      probe.inputs.compactMap {
        switch $0 {
        case .linkChanged("toy", .up): "up"
        case .linkChanged("toy", .down(let reason)): "down: \(reason)"
        case .linkChanged("toy", .refused(let whom)): "refused: \(whom)"
        default: nil
        }
      }
    }

    init(from network: String? = nil, port: Int? = nil) throws {
      let network = try network.map { text throws(ValueError) in try IPv4Network(text) }
      let number = port ?? Self.freePort()
      self.port = number
      device = vehicledTests.device(probe, named: "toy", Schema())
      probe.onInput { input, _, effects in
        switch input {
        case .started: effects.append(.listen("toy", at: "127.0.0.1:\(number)", from: network))
        case .linkChanged("toy", .up): effects.send("toy", Array("hello".utf8))
        case .received("toy", let bytes):
          switch String(decoding: bytes, as: UTF8.self) {
          case "go": effects.append(.resetLink("toy", reason: "requested"))
          case "end": effects.append(.closeLink("toy"))
          default: effects.send("toy", Array("ok".utf8), 1)
          }
        default: break
        }
      }
      device.open(restored: [:])
    }

    var waitReason: String? { device.ports.first?.waitReason }

    static func freePort() -> Int {
      let (descriptor, port) = listening()
      close(descriptor)
      return port
    }
  }

  private func connect(_ port: Int) -> CInt {
    let descriptor = socket(AF_INET, CInt(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = in_port_t(UInt16(port)).bigEndian
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    let code = withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { Glibc.connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) }
    }
    _ = fcntl(descriptor, F_SETFL, O_NONBLOCK)
    if code == 0 { return descriptor }
    close(descriptor)
    return -1
  }

  /// The bytes available; nil if the peer has closed the connection.
  private func text(_ descriptor: CInt) -> String? {
    var bytes = [UInt8](repeating: 0, count: 64)
    let count = read(descriptor, &bytes, bytes.count)
    return count < 0 && errno == EAGAIN ? "" : count > 0 ? String(decoding: bytes.prefix(count), as: UTF8.self) : nil
  }

  private func say(_ text: String, to descriptor: CInt) {
    _ = Array(text.utf8).withUnsafeBytes { write(descriptor, $0.baseAddress, $0.count) }
  }

  private func connected(_ port: Int) async -> CInt {
    var descriptor: CInt = -1
    _ = await until {
      descriptor = connect(port)
      return descriptor >= 0
    }
    return descriptor
  }

  /// Connects until accepted: a connection right after a disconnect is rejected.
  private func accepted(_ port: Int) async -> CInt {
    for _ in 0..<50 {
      let descriptor = await connected(port)
      var reply: String? = ""
      _ = await until {
        reply = text(descriptor)
        return reply != ""
      }
      if reply == "hello" { return descriptor }
      close(descriptor)
    }
    return -1
  }

  @Test func `one peer at a time is accepted, and another after it has disconnected`() async throws {
    let rig = try Rig(from: "127.0.0.0/8")
    let first = await connected(rig.port)
    #expect(await until { rig.changes == ["up"] })
    let second = await connected(rig.port)
    #expect(await until { text(second) == nil }, "another peer is connected")
    #expect(await until { text(first) == "hello" }, "the daemon may send first")
    say("say", to: first)
    #expect(await until { text(first) == "ok" })
    close(first)
    #expect(await until { rig.changes.last == "down: 127.0.0.1 closed the connection" })
    #expect(rig.waitReason == "listening on 127.0.0.1:\(rig.port)")
    let third = await accepted(rig.port)
    #expect(await until { rig.changes.last == "up" })
    say("go", to: third)
    #expect(await until { rig.changes.last == "down: requested" && text(third) == nil }, "\(rig.changes)")
    let fourth = await accepted(rig.port)
    #expect(await until { rig.changes.last == "up" })
    say("end", to: fourth)
    #expect(await until { text(fourth) == nil && rig.device.ports.isEmpty })
    #expect(await until { connect(rig.port) < 0 }, "the port is closed")
    for descriptor in [second, third, fourth] { close(descriptor) }
  }

  @Test func `a peer from another network is rejected and named`() async throws {
    let rig = try Rig(from: "192.168.4.0/24")
    let stranger = await connected(rig.port)
    #expect(await until { text(stranger) == nil })
    #expect(
      await until { rig.waitReason?.hasSuffix("rejected 127.0.0.1, which is not in 192.168.4.0/24") == true }, "\(rig.waitReason ?? "")")
    #expect(rig.changes == ["refused: 127.0.0.1, which is not in 192.168.4.0/24"])
    close(stranger)
    rig.device.close {}
    #expect(await until { connect(rig.port) < 0 }, "the port closes with its device")
  }

  @Test func `the program that uses the port is named, and the link does not retry`() async throws {
    let (holder, port) = listening()
    let rig = try Rig(port: port)
    let expected = "down: port \(port) is in use by "
    #expect(await until { rig.changes.first?.hasPrefix(expected) == true }, "\(rig.changes)")
    #expect(rig.changes.first?.contains("(process \(getpid()))") == true, "\(rig.changes)")
    close(holder)
  }

  @Test func `only a program that listens on the same address is named`() {
    let (holder, port) = listening()  // at 127.0.0.1
    let us = "(process \(getpid()))"
    for address in ["127.0.0.1", "0.0.0.0"] { #expect(PortHolder.description(of: port, at: address).contains(us), "\(address)") }
    #expect(!PortHolder.description(of: port, at: "127.0.0.2").contains(us))
    close(holder)
  }

  @Test(arguments: [
    ("192.168.4.0/24", "192.168.4.2", true), ("192.168.4.9/24", "192.168.5.2", false), ("10.0.0.7", "10.0.0.7", true),
    ("10.0.0.7", "10.0.0.8", false), ("0.0.0.0/0", "1.2.3.4", true), ("127.0.0.0/8", "::1", false), ("127.0.0.0/8", "127.0.0", false),
  ]) func `a network contains an address`(_ network: String, _ address: String, _ expected: Bool) throws {
    #expect(try IPv4Network(network).contains(address) == expected)
  }

  @Test func `invalid networks are rejected, and valid ones are normalised`() throws {
    for wrong in ["", "1.2.3", "1.2.3.4/33", "1.2.3.4/", "1.2.3.4/-1", "1.2.3.256", "a.b.c.d/8", "1.2.3.4/8/9", "1.2.3.4 ", "+1.2.3.4"] {
      #expect(throws: ValueError.self, "\(wrong)") { try IPv4Network(wrong) }
    }
    #expect(try IPv4Network("192.168.4.9/24").description == "192.168.4.0/24")
  }
}
