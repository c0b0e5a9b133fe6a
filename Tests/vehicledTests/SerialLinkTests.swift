// The speed of serial links. Only a real serial chip has a driver that changes its speed; these tests use files that must not be
// mistaken for one.

import CLinux
import Glibc
import Protocols
import Testing

@testable import vehicled

/// Records the calls of a link.
@Loop private final class Owner: LinkOwner {
  var isUp = false
  var detailChanges = 0
  var end: String?
  func linkCameUp(maximumSend: Int?) { isUp = true }
  func linkReceived(_ bytes: [UInt8]) {}
  func linkSent(_ id: SendID, failure: String?) {}
  func linkDetailsChanged() { detailChanges += 1 }
  func linkWentDown(_ reason: String, final: Bool) { end = reason }
}

@Suite("A serial link's speed") @Loop struct SerialLinkTests {
  /// The speed that the other end of a pseudo-terminal sees. Only termios2 (TCGETS2) holds arbitrary speeds.
  private func speed(_ controller: CInt) -> UInt32 {
    var settings = [UInt32](repeating: 0, count: 11)
    return ioctl(controller, 0x802C_542A, &settings) == 0 ? settings[10] : 0
  }

  @Test func `the speed of a pseudo-terminal cannot be changed, even if it is named like a serial port`() async throws {
    let (controller, follower, path) = pseudoTerminal()
    defer { [controller, follower].forEach { close($0) } }
    #expect(clinux_serial_is_hardware(follower) == 0 && clinux_serial_is_hardware(controller) == 0)
    let alias = temporaryDirectory() + "/ttyUSB0"
    #expect(symlink(path, alias) == 0)
    for path in [path, alias] {
      let probe = Probe()
      // A request to change it has no effect.
      probe.onInput { input, _, effects in if case .linkChanged(_, .up) = input { effects.append(.setBaud(.main, 9600)) } }
      let device = device(probe, links: [(.main, try LinkURL("serial:\(path)"))])
      device.open(restored: [:])
      #expect(await until { device.ports[0].isUp })
      #expect(probe.inputs.contains { if case .linkChanged(_, .up(_, baud: nil)) = $0 { true } else { false } })
      #expect(device.ports[0].details.isEmpty && speed(controller) == 38400)
      device.disconnect()
    }
  }

  @Test(arguments: [
    ("/dev/rfcomm99", "bind it with rfcomm, also after each boot"), ("/dev/ttyUSB99", "check that the adapter is plugged in"),
  ])
  func `a missing port is an error with its remedy`(_ path: String, _ remedy: String) async throws {
    let device = device(Probe(), links: [(.main, try LinkURL("serial:\(path)"))])
    device.open(restored: [:])
    let text = "\(path) does not exist: \(remedy)"
    #expect(await until { if case .down(text) = device.ports[0].state { true } else { false } }, "\(device.ports[0].state)")
    device.disconnect()
  }

  @Test(arguments: ["/dev/null", "/dev/tty", "/proc/self/status"]) func `the speed of other files cannot be changed`(_ path: String) {
    let descriptor = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)
    #expect(clinux_serial_is_hardware(descriptor) == 0)
    close(descriptor)
  }

  @Test func `the speed changes while the port stays open`() async throws {
    let (controller, follower, path) = pseudoTerminal()
    defer { [controller, follower].forEach { close($0) } }
    let owner = Owner()
    let channel = ChannelLink.serial(path: path, baud: nil, owner: owner)
    // Simulates a serial chip.
    channel.baud = 38400
    let link: any Link = channel
    #expect(await until { owner.isUp })
    let descriptor = link.descriptor
    #expect(speed(controller) == 38400 && link.details == ["baud": "38400"])
    for baud in [9600, 230_400, 2_000_000, 38400] {
      link.setBaud(baud)
      #expect(speed(controller) == baud && link.details == ["baud": "\(baud)"])
    }
    #expect(owner.detailChanges == 4 && owner.end == nil && link.descriptor == descriptor)
    #expect(clinux_serial_lock(follower) == -EWOULDBLOCK)
    link.close()
    #expect(await until { clinux_serial_lock(follower) == 0 })
  }

  @Test func `a speed that is set in the URL is fixed`() async throws {
    let (controller, follower, path) = pseudoTerminal()
    defer { [controller, follower].forEach { close($0) } }
    let owner = Owner()
    let link = ChannelLink.serial(path: path, baud: 115_200, owner: owner)
    #expect(await until { owner.isUp })
    link.setBaud(9600)
    #expect(link.baud == nil && speed(controller) == 115_200)
    link.close()
  }
}
