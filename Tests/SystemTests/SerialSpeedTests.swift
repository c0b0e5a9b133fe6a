// A serial link to a pseudo-terminal without an adapter.

import CLinux
import Foundation
import Testing

extension EndToEnd {
  @Suite("The speed of a serial link") struct SerialSpeedTests {
    @Test func `no other speed is tried on a pseudo-terminal`() throws {
      let rig = try Rig()
      var (controller, follower): (Int32, Int32) = (-1, -1)
      var path = [CChar](repeating: 0, count: 128)
      try #require(openpty(&controller, &follower, &path, nil, nil) == 0)
      defer { for end in [controller, follower] { close(end) } }
      for end in [controller, follower] { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
      _ = fcntl(controller, F_SETFL, O_NONBLOCK)
      // A name like a real port's changes nothing.
      let alias = "\(rig.directory)/ttyUSB0"
      try FileManager.default.createSymbolicLink(
        atPath: alias, withDestinationPath: try #require(ttyname(follower).map { String(cString: $0) }))
      try rig.write("[device.ev]\nkind = \"obd\"\nlink = \"serial:\(alias)\"\n")
      let daemon = try rig.daemon()
      var received = ""
      /// Whether at least two resets have been sent.
      let isRepeated = wait(seconds: 20) {
        var bytes = [UInt8](repeating: 0, count: 256)
        let count = read(controller, &bytes, bytes.count)
        if count > 0 { received += String(decoding: bytes.prefix(count), as: UTF8.self) }
        return received.components(separatedBy: "ATZ").count > 2
      }
      #expect(isRepeated, "\(received) \(daemon.stderr)")
      // Only termios2 (TCGETS2) holds arbitrary speeds.
      var settings = [UInt32](repeating: 0, count: 11)
      #expect(ioctl(controller, 0x802C_542A, &settings) == 0 && settings[10] == 38400)
      #expect(rig.vehiclectl("status", "ev").output.contains("the adapter does not respond; check its power"))
      #expect(!FileManager.default.fileExists(atPath: "\(rig.directory)/state/devices/ev/baud"))
    }
  }
}
