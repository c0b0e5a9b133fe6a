// Access control for other users: lists of users, and polkit on a private bus with a mock polkitd. Needs root, because it runs
// clients as another user.

import DBus
import Foundation
import Synchronization
import Testing
import Varlink

extension EndToEndServices {
  @Suite("Access", .enabled(if: geteuid() == 0, "only root can run clients as other users")) struct AccessTests {
    /// A mock polkitd that answers each query as the test sets, and records the queries.
    private final class Authority: Sendable {
      let questions = Mutex([DBusMessage]())
      /// nil: it waits, as for a password.
      let answer = Mutex(Optional((isAuthorized: true, isChallenge: false)))
      let cancelled = Mutex([String]())
      private let connection = Mutex(DBusConnection?.none)

      init(_ bus: String) throws {
        let isNamed = Mutex(false)
        let connection = DBusConnection(to: bus) { _ in
        } received: { [weak self] message in
          guard let self, message.kind == .call else { return }
          if message.member == "CancelCheckAuthorization" { cancelled.withLock { $0.append(message.body.first?.string ?? "") } }
          guard message.member == "CheckAuthorization" else { return }
          questions.withLock { $0.append(message) }
          guard let (isAuthorized, isChallenge) = answer.withLock({ $0 }) else { return }
          let reply = message.reply([.structure([.bool(isAuthorized), .bool(isChallenge), .array(of: "{ss}", [])])])
          self.connection.withLock { $0?.send(reply) }
        } ended: { _ in
        }
        self.connection.withLock { $0 = connection }
        connection.call(
          .call(DBusDaemon.name, DBusDaemon.path, DBusDaemon.name, "RequestName", [.string("org.freedesktop.PolicyKit1"), .uint32(4)])
        ) { _ in
          isNamed.withLock { $0 = true }
        }
        try #require(wait { isNamed.withLock { $0 } })
      }

      deinit { connection.withLock { $0?.close() } }

      var actions: [String] { questions.withLock { $0.compactMap { $0.body.count > 1 ? $0.body[1].string : nil } } }
    }

    private func stranger(_ rig: Rig, _ arguments: String...) -> Outcome { stranger(rig, arguments) }

    private func stranger(_ rig: Rig, _ arguments: [String]) -> Outcome {
      rig.run(
        "/usr/bin/setpriv",
        ["--reuid=65534", "--regid=65534", "--clear-groups", "\(Rig.programs)/vehiclectl", "--socket", rig.socket] + arguments)
    }

    private func configuration(_ control: String) -> String {
      "[control]\n\(control)\n[device.ev]\nkind = \"obd\"\nlink = \"serial:/dev/vehicled-none\"\n"
    }

    @Test func `listed users have their rights, and others get an error that names the missing right`() throws {
      let rig = try Rig()
      chmod(rig.directory, 0o755)
      try rig.write(configuration("observe-users = [\"nobody\"]"))
      let daemon = try rig.daemon()
      #expect(stranger(rig, "status").status == 0)
      let refused = stranger(rig, "disconnect", "ev")
      #expect(refused.status == 7)
      #expect(
        refused.errors.contains("permission denied: nobody lacks the control right for ev, which requires group vehicled"),
        "\(refused.errors)")
      try rig.write(configuration("control-users = [\"65534\"]"))
      #expect(rig.vehiclectl("reload").status == 0)
      #expect(stranger(rig, "disconnect", "ev").status == 0)
      try rig.write(configuration(""))
      #expect(rig.vehiclectl("reload").status == 0)
      let denied = stranger(rig, "status")
      #expect(
        denied.status == 7
          && denied.errors.contains(
            "permission denied: nobody lacks the observe right, which requires group vehicled or group vehicled-observe; "
              + "sudo usermod -aG vehicled"),
        "\(denied.errors)")
      #expect(daemon.isRunning)
    }

    @Test func `without a right a client can only read the version and the interfaces`() throws {
      let rig = try Rig()
      chmod(rig.directory, 0o755)
      try rig.write(configuration(""))
      let daemon = try rig.daemon()
      let version = stranger(rig, "version")
      #expect(version.status == 0 && version.output.contains("io.vehicled"), "\(version.output) \(version.errors)")
      let parameters = #"{"interface":"io.vehicled"}"#
      #expect(stranger(rig, "call", "org.varlink.service.GetInterfaceDescription", parameters).status == 0)
      for method in Contract.methods {
        for flags in [[], ["--more"]] {
          let refused = stranger(rig, ["call", method.name, "{}"] + flags)
          #expect(refused.status == 7 && refused.errors.contains("nobody lacks the "), "\(method.name) \(flags): \(refused.errors)")
        }
      }
      // The limit for calls of clients without a right, which is checked before the call is complete.
      let long = #"{"device":"\#(String(repeating: "x", count: 17 << 10))"}"#
      let large = stranger(rig, "call", "io.vehicled.Status", long)
      #expect(large.status == 7 && large.errors.contains("calls of more than 16 KiB require the observe right"), "\(large.errors)")
      // The groups of the package need not exist, and nothing is logged about them or about the calls.
      #expect(!daemon.stderr.contains("its entry in") && !daemon.stderr.contains("nobody"), "\(daemon.stderr)")
      #expect(rig.vehiclectl("status").status == 0)
    }

    @Test func `a user with rights on one device sees and controls only this device`() throws {
      let rig = try Rig()
      chmod(rig.directory, 0o755)
      func configuration(_ lists: String) -> String {
        let devices = ["ev", "van"].map { "[device.\($0)]\nkind = \"obd\"\nlink = \"serial:/dev/vehicled-\($0)\"\n" }
        return devices[0] + lists + "\n" + devices[1]
      }
      try rig.write(configuration("control-users = [\"nobody\"]\nobserve = [\"no-such-group\"]"))
      let check = rig.run("\(Rig.programs)/vehicled", ["--check-config", "--config", rig.configuration])
      #expect(check.status == 0 && check.errors.contains("no-such-group does not exist: its entry in [device.ev]"), "\(check.errors)")
      let daemon = try rig.daemon()
      let status = stranger(rig, "status")
      #expect(status.status == 0 && status.output.contains("ev") && !status.output.contains("van"), "\(status.output) \(status.errors)")
      #expect(stranger(rig, "disconnect", "ev").status == 0)
      for call in [["status", "van"], ["get", "van.vin"], ["describe", "van"], ["disconnect", "van"], ["reload"], ["metrics"]] {
        let refused = stranger(rig, call)
        #expect(refused.status == 7 && refused.errors.contains("nobody lacks the"), "\(call): \(refused.errors)")
      }
      try rig.write(configuration("observe-users = [\"nobody\"]"))
      #expect(rig.vehiclectl("reload").status == 0)
      let refused = stranger(rig, "connect", "ev")
      #expect(refused.status == 7 && refused.errors.contains("nobody lacks the control right for ev"), "\(refused.errors)")
      #expect(stranger(rig, "status", "ev").status == 0)
      #expect(daemon.isRunning)
    }

    @Test func `polkit is queried once per client and right`() throws {
      let rig = try Rig()
      chmod(rig.directory, 0o755)
      let (bus, environment) = try rig.bus()
      let authority = try Authority(environment["DBUS_SYSTEM_BUS_ADDRESS"] ?? "")
      try rig.write(configuration("authorization = \"polkit\""))
      let daemon = try rig.daemon(environment: environment)
      // Root is not checked with polkit.
      #expect(rig.vehiclectl("status").status == 0 && authority.actions.isEmpty)
      #expect(stranger(rig, "status").status == 0)
      #expect(authority.actions == ["io.vehicled.observe"])
      let question = try #require(authority.questions.withLock { $0.first })
      guard case .structure(let subject)? = question.body.first, subject.count == 2, let who = subject[1].dictionary else {
        Issue.record("no subject: \(question.body)")
        return
      }
      #expect(
        subject[0].string == "unix-process" && who["uid"]?.int == 65534 && who["pid"]?.int ?? 0 > 0 && who["start-time"]?.int ?? 0 > 0)
      #expect(question.body[3].int == 1)
      // A command with two calls causes one query for each right.
      #expect(stranger(rig, "disconnect", "ev").status == 0)
      #expect(authority.actions == ["io.vehicled.observe", "io.vehicled.control"])
      authority.answer.withLock { $0 = (false, false) }
      let refused = stranger(rig, "connect", "ev")
      #expect(refused.status == 7 && refused.errors.contains("polkit denied io.vehicled.control"), "\(refused.errors)")
      authority.answer.withLock { $0 = (false, true) }
      let challenged = stranger(rig, "status")
      #expect(challenged.status == 7 && challenged.errors.contains("authentication for io.vehicled.observe"), "\(challenged.errors)")
      withExtendedLifetime((bus, daemon)) {}
    }

    @Test func `a query to polkit is cancelled when its client leaves, and a user has a limited number of them`() throws {
      let rig = try Rig()
      chmod(rig.directory, 0o755)
      let (bus, environment) = try rig.bus()
      let authority = try Authority(environment["DBUS_SYSTEM_BUS_ADDRESS"] ?? "")
      authority.answer.withLock { $0 = nil }
      try rig.write(configuration("authorization = \"polkit\""))
      let daemon = try rig.daemon(environment: environment)
      func waiting() throws -> Program {
        try Program(
          "/usr/bin/setpriv",
          ["--reuid=65534", "--regid=65534", "--clear-groups", "\(Rig.programs)/vehiclectl", "--socket", rig.socket, "status"],
          in: rig.directory)
      }
      let clients = try (0..<4).map { _ in try waiting() }
      try #require(wait { authority.actions.count == 4 })
      let refused = stranger(rig, "status")
      #expect(refused.status == 7 && refused.errors.contains("too many requests for authorization"), "\(refused.errors)")
      clients[0].end(SIGKILL)
      #expect(wait { authority.cancelled.withLock { $0.count } == 1 })
      let numbers = authority.questions.withLock { $0.compactMap { $0.body.last?.string } }
      #expect(Set(numbers).count == 4 && authority.cancelled.withLock { numbers.contains($0[0]) })
      clients.dropFirst().forEach { $0.end(SIGKILL) }
      #expect(wait { authority.cancelled.withLock { Set($0).count } == 4 })
      withExtendedLifetime((bus, daemon)) {}
    }

    @Test func `without polkit only root has access`() throws {
      let rig = try Rig()
      chmod(rig.directory, 0o755)
      let (bus, environment) = try rig.bus()
      try rig.write(configuration("authorization = \"polkit\""))
      let daemon = try rig.daemon(environment: environment)
      let outcome = stranger(rig, "status")
      #expect(outcome.status == 7 && outcome.errors.contains("polkit is not installed"), "\(outcome.errors)")
      bus.end(SIGKILL)
      let gone = stranger(rig, "status")
      #expect(gone.status == 7 && gone.errors.contains("cannot query polkit"), "\(gone.errors)")
      #expect(daemon.isRunning && rig.vehiclectl("status").status == 0)
    }
  }
}
