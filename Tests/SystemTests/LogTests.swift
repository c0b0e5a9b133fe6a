// The log of the daemon through the socket, and what a reload changed.

import Foundation
import Testing

extension WholeHouse {
  @Suite("Log") struct LogTests {
    @Test func `the log of a device has its link and the detected vehicle, and following it shows the end of the link`() throws {
      let house = try House()
      let (daemon, simulator) = try house.ev()
      let hasVehicle = wait { house.vehiclectl("log", "ev").output.contains("ev  vehicle detected: electric Hyundai or Kia") }
      #expect(hasVehicle, "\(house.vehiclectl("log", "ev").output)")
      let output = house.vehiclectl("log", "ev").output
      #expect(output.contains("notice   ev/main  link is up: tcp:127.0.0.1:") && !output.contains("serving"))
      #expect(house.vehiclectl("log").output.contains("serving \(house.socket) with 1 device"))
      #expect(house.vehiclectl("log", "--level", "error").output == "")
      let follower = try house.start("vehiclectl", ["--socket", house.socket, "log", "--follow", "--json", "ev"])
      #expect(wait { follower.printed.contains(#""message":"link is up"#) })
      simulator.end()
      #expect(wait { follower.printed.contains(#""link":"main","message":"link is down"#) }, "\(follower.printed)")
      follower.signal(SIGINT)
      #expect(follower.status(within: 10) == 0)
      #expect(house.vehiclectl("log", "van").status == 4 && house.vehiclectl("log", "--since", "soon").status == 2)
      #expect(daemon.end() == 0)
      #expect(house.vehiclectl("log").status == 3)
    }

    @Test func `a reload prints what was added, removed and changed`() throws {
      let house = try House()
      func configure(_ devices: KeyValuePairs<String, Int>) throws {
        try house.write(devices.map { "[device.\($0)]\nkind = \"obd\"\nlink = \"tcp:127.0.0.1:1\"\nrate = \($1)\n" }.joined())
      }
      try configure(["ev": 20, "torq": 20])
      _ = try house.daemon()
      try configure(["ev": 10, "golf": 20])
      #expect(house.vehiclectl("reload").output.split(separator: "\n").sorted() == ["+golf", "-torq", "~ev"])
      #expect(house.vehiclectl("reload", "--quiet").output == "")
    }
  }
}
