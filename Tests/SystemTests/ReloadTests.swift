// The order of devices after reloads.

import Foundation
import Testing

extension EndToEnd {
  @Suite("Reload") struct ReloadTests {
    @Test func `devices keep the order of the configuration`() throws {
      let rig = try Rig()
      func configure(_ devices: KeyValuePairs<String, Int>) throws {
        try rig.write(devices.map { "[device.\($0)]\nkind = \"obd\"\nlink = \"tcp:127.0.0.1:1\"\nrate = \($1)\n" }.joined())
      }
      func names() -> [String] {
        let status = try? rig.vehiclectl("status", "--json").json()
        return (status?["devices"] as? [[String: Any]] ?? []).compactMap { $0["name"] as? String }
      }
      try configure(["van": 20, "bus": 20, "ev": 20])
      let daemon = try rig.daemon()
      #expect(wait { names() == ["van", "bus", "ev"] })
      try configure(["van": 10, "bus": 20, "ev": 20])
      #expect(rig.vehiclectl("reload").status == 0 && names() == ["van", "bus", "ev"])
      try configure(["ev": 20, "lorry": 20, "van": 10, "bus": 10])
      #expect(rig.vehiclectl("reload").status == 0 && names() == ["ev", "lorry", "van", "bus"])
      #expect(daemon.isRunning)
    }
  }
}
