// What the daemon tells of itself: its figures as Prometheus reads them, how much it tells its journal, and a bundle for a report.

import Foundation
import Testing

extension WholeHouse {
  @Suite("Upkeep") struct UpkeepTests {
    private static let tests = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent().path

    @Test func `Prometheus reads the metrics`() throws {
      let house = try House()
      _ = try house.ev()
      #expect(wait { house.get("battery-voltage") != nil })
      let file = "\(house.directory)/vehicled.prom"
      #expect(house.vehiclectl("metrics", "--output", file).status == 0)
      let text = try String(contentsOfFile: file, encoding: .utf8)
      let outcome = house.run("/bin/sh", ["-c", "exec \"$0\" \"$1\" <\"$2\"", House.python, "\(Self.tests)/Peers/metrics.py", file])
      #expect(outcome.status == 0, "\(outcome.errors)\n\(text)")
      // node_exporter runs as somebody else, and reads whole files only.
      let mode = try FileManager.default.attributesOfItem(atPath: file)[.posixPermissions] as? Int
      #expect(mode == 0o644 && text.hasSuffix("# EOF\n"))
      let printed = house.vehiclectl("metrics")
      #expect(printed.status == 0 && printed.output.contains("vehicled_build_info{version="))
      let json = try house.vehiclectl("metrics", "--json").json()
      #expect((json["statistics"] as? [[String: Any]])?.contains { $0["name"] as? String == "vehicled_clients" } == true)
    }

    @Test func `how much is logged can be changed while the daemon runs`() throws {
      let house = try House()
      let (daemon, _) = try house.ev()
      #expect(house.vehiclectl("log-level").output == "info\n")
      let before = daemon.complaints.contains(" debug ")
      #expect(house.vehiclectl("log-level", "debug").output == "debug\n")
      let wrong = house.vehiclectl("log-level", "chatty")
      #expect(wrong.status != 0 && wrong.errors.contains("level"), "\(wrong.errors)")
      #expect(house.vehiclectl("log-level", "--json").output == "{\"level\":\"debug\"}\n")
      #expect(!before && wait { daemon.complaints.contains("the journal gets what is debug or worse from now on") })
    }
  }
}
