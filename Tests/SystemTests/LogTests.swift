// The log of the daemon through the socket, and what a reload changed.

import Foundation
import Testing

extension EndToEnd {
  @Suite("Log") struct LogTests {
    @Test func `the log of a device has its link and the detected vehicle, and following it shows the end of the link`() throws {
      let rig = try Rig()
      let (daemon, simulator) = try rig.ev()
      let hasVehicle = wait { rig.vehiclectl("log", "ev").output.contains("ev       vehicle detected: electric Hyundai or Kia") }
      #expect(hasVehicle, "\(rig.vehiclectl("log", "ev").output)")
      let output = rig.vehiclectl("log", "ev").output
      #expect(output.contains("notice   ev/main  link is up: tcp:127.0.0.1:") && !output.contains("serving") && !output.contains("event="))
      #expect(rig.vehiclectl("log").output.contains("serving \(rig.socket) with 1 device"))
      #expect(rig.vehiclectl("log", "--level", "error").output == "")
      let follower = try rig.start("vehiclectl", ["--socket", rig.socket, "log", "--follow", "--json", "ev"])
      #expect(wait { follower.stdout.contains(#""message":"link is up"#) })
      simulator.end()
      #expect(wait { follower.stdout.contains(#""link":"main","message":"link is down"#) }, "\(follower.stdout)")
      follower.signal(SIGINT)
      #expect(follower.status(within: 10) == 0)
      #expect(rig.vehiclectl("log", "van").status == 4 && rig.vehiclectl("log", "--since", "soon").status == 2)
      #expect(daemon.end() == 0)
      #expect(rig.vehiclectl("log").status == 3)
    }

    @Test func `a stored vehicle is logged once it responds, and a link that was not up does not go down at the end`() throws {
      let rig = try Rig()
      let (_, link) = try rig.simulator("--car", "petrol")
      try rig.write("[device.golf]\nkind = \"obd\"\nlink = \"\(link)\"\n[device.far]\nkind = \"obd\"\nlink = \"tcp:127.0.0.1:1\"\n")
      for _ in 0..<2 {
        let daemon = try rig.daemon()
        try #require(wait { daemon.stderr.contains("vehicle detected: standard OBD-II") }, "\(daemon.stderr)")
        #expect(daemon.end() == 0)
        let lines = daemon.stderr.split(separator: "\n")
        let up = lines.firstIndex { $0.contains("golf/main: link is up") } ?? .max
        #expect(up < lines.firstIndex { $0.contains("vehicle detected") } ?? -1, "\(daemon.stderr)")
        let ended = lines.filter { $0.contains("link is down: the daemon is stopping") }
        #expect(ended.count == 1 && ended[0].contains("golf/main"), "\(daemon.stderr)")
      }
    }

    @Test func `a reload prints what was added, removed and changed`() throws {
      let rig = try Rig()
      func configure(_ devices: KeyValuePairs<String, Int>) throws {
        try rig.write(devices.map { "[device.\($0)]\nkind = \"obd\"\nlink = \"tcp:127.0.0.1:1\"\nrate = \($1)\n" }.joined())
      }
      try configure(["ev": 20, "torq": 20])
      _ = try rig.daemon()
      try configure(["ev": 10, "golf": 20])
      #expect(rig.vehiclectl("reload").output.split(separator: "\n").sorted() == ["+golf", "-torq", "~ev"])
      #expect(rig.vehiclectl("reload", "--quiet").output == "")
    }
  }
}
