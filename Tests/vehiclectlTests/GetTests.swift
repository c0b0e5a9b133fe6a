// `vehiclectl get` of a value that is missing.

import Protocols
import Testing
import Varlink

@testable import vehiclectl

@Suite("Get") struct GetTests {
  @Test(arguments: [("up", "down", 1), ("down", "up", 5), ("connecting", "down", 5)])
  func `only the main link decides whether the device is connected`(_ main: String, _ video: String, _ status: Int32) throws {
    let server = try SocketServer { method, _ in
      if method == Contract.Get.name {
        let reading = Contract.Reading(device: "car", property: "roll", reason: "not reported yet")
        return .send(VarlinkReply.message(Contract.Get.Result(readings: [reading])))
      }
      let links = [("main", main), ("video", video)].map { Contract.Link(name: $0, url: "tcp:car:1", state: $1, since: 0) }
      let car = Contract.Device(name: "car", kind: "car", state: "ready", links: links)
      return .send(VarlinkReply.message(Contract.Status.Result(devices: [car])))
    }
    defer { server.stop() }
    let outcome = try Program.run(["get", "car.roll", "--socket", server.path])
    #expect(outcome.status == status && outcome.stdout.isEmpty)
  }
}
