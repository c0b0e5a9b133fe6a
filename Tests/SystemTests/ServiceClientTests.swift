// The clients of ServiceRuntime with the real daemon: a watch that survives its restart, and single calls beside it.

import Foundation
import Protocols
import ServiceRuntime
import Testing
import Varlink

extension EndToEndServices {
  @Suite("Clients of services") struct ServiceClientTests {
    /// Ends the loop once a condition holds, or after 30 s.
    private final class Check: EventSource {
      private let condition: () -> Bool
      private let loop: EventLoop
      private let end = SystemClock.monotonic + 30 * .second

      init(_ loop: EventLoop, _ condition: @escaping () -> Bool) {
        (self.loop, self.condition) = (loop, condition)
        super.init()
        wake = SystemClock.monotonic
        loop.add(self)
      }

      override func timerFired(at now: Instant) {
        wake = now + 10 * .millisecond
        guard condition() || now > end else { return }
        isClosed = true
        loop.stop()
      }
    }

    @Test func `a watch receives values, and again after the daemon has restarted`() throws {
      let rig = try Rig()
      let (_, link) = try rig.simulator()
      try rig.write("[device.ev]\nkind = \"obd\"\nlink = \"\(link)\"\n")
      let loop = try EventLoop(handlesSignals: false)
      var snapshots = 0
      var gaps = 0
      var failures: [DaemonFailure] = []
      var values: [Value] = []
      let watch = DaemonWatch(socket: rig.socket, references: ["ev.rpm"], minimumInterval: 0, loop: loop) { event, _ in
        switch event {
        case .result(let result):
          snapshots += result.snapshot == nil ? 0 : 1
          values += (result.changes ?? []).compactMap { $0.reference == "ev.rpm" ? $0.value : nil }
        case .gap: gaps += 1
        case .disconnected(let failure, _): failures.append(failure)
        }
      }
      defer { watch.close() }
      func run(until condition: @escaping () -> Bool) throws -> Bool {
        _ = Check(loop, condition)
        try loop.run()
        return condition()
      }
      #expect(try run { !failures.isEmpty }, "no daemon runs yet")
      for round in 1...2 {
        values = []
        let daemon = try rig.daemon()
        #expect(try run { snapshots >= round && values.count >= 20 })
        var schema: Contract.Schema?
        DaemonCall(socket: rig.socket, Contract.Describe.self, .init(device: "ev"), loop: loop) {
          schema = (try? $0.get())?.schemas.first
        }
        #expect(try run { schema != nil })
        #expect(schema?.properties.contains { $0.name == "rpm" } == true)
        let before = failures.count
        #expect(daemon.end() == 0)
        #expect(try run { failures.count > before })
      }
      #expect(gaps == 0)
    }
  }
}
