import CLinux
import Glibc
import ServiceRuntime
import Testing

@testable import vehicled

@Suite("Access") struct AccessTests {
  private static let nobody: UInt32 = 65534

  @Test func `peer credentials come from the kernel`() throws {
    var ends: [CInt] = [0, 0]
    try #require(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0, &ends) == 0)
    defer { ends.forEach { close($0) } }
    let peer = try #require(Peer(socket: ends[0]))
    #expect(peer.pid == getpid() && peer.user == geteuid() && peer.groups.contains(getegid()))
  }

  private func peer(_ user: UInt32, _ groups: UInt32...) -> Peer { Peer(pid: 1, user: user, groups: Set(groups)) }

  /// The decision with these cached lookups; others are not known yet.
  private func decide(
    _ control: Configuration.Control, _ right: Right, on scope: Scope = .daemon, for peer: Peer?, _ answers: NameService.Answers = [:]
  ) -> Access.Decision {
    Access(control).decide(right, on: scope, for: peer) { queries in answers.filter { queries.contains($0.key) } }
  }

  private static let listed = Configuration.Control(
    lists: .init(
      observe: ["family"], control: ["drivers", "no-such-group"], observeUsers: ["eve"], controlUsers: ["4711", "no-such-user"]))
  private static let known: NameService.Answers = [
    .group("family"): .number(50), .group("drivers"): .number(60), .group("no-such-group"): .absent, .user("eve"): .number(1000),
    .user("4711"): .number(4711), .user("no-such-user"): .absent,
    .userName(nobody): .name("nobody"), .userName(1000): .name("eve"), .userName(4711): .absent, .userName(61_003): .absent,
  ]

  @Test func `root and the daemon's own user have all rights`() {
    for usesPolkit in [false, true] {
      let control = Configuration.Control(lists: .init(control: ["never-looked-up"]), usesPolkit: usesPolkit)
      for user in [0, geteuid()] {
        for right in [Right.observe, .control, .drive] { #expect(decide(control, right, for: peer(user)).isGranted) }
      }
    }
  }

  @Test func `listed groups and users have their rights`() {
    func decide(_ right: Right, _ peer: Peer?) -> Access.Decision { self.decide(Self.listed, right, for: peer, Self.known) }
    for observer in [peer(Self.nobody, 50), peer(1000)] {
      #expect(decide(.observe, observer).isGranted && !decide(.control, observer).isGranted)
    }
    for controller in [peer(Self.nobody, 7, 60), peer(4711)] {
      #expect(decide(.observe, controller).isGranted && decide(.control, controller).isGranted && decide(.drive, controller).isGranted)
    }
    #expect(!decide(.observe, nil).isGranted)
    #expect(
      decide(.control, peer(Self.nobody))
        == .denied(
          "nobody lacks the control right, which requires group drivers or group no-such-group or user 4711 or user no-such-user; "
            + "sudo usermod -aG drivers nobody, then log in again"))
    guard case .denied(let message) = decide(.observe, peer(Self.nobody)) else {
      Issue.record("a user without rights may observe")
      return
    }
    #expect(message.hasPrefix("nobody lacks the observe right, which requires group family or user eve or group drivers"))
    #expect(
      self.decide(Configuration.Control(lists: .init()), .control, for: peer(Self.nobody), Self.known)
        == .denied("nobody lacks the control right, which requires root; add nobody to control-users in [control] of the configuration"))
    // A UID without an account can be listed, but cannot be in a group.
    guard case .denied(let remedy) = decide(.control, peer(61_003)) else {
      Issue.record("a user without rights may control")
      return
    }
    #expect(remedy.hasSuffix("add 61003 to control-users in [control] of the configuration"), "\(remedy)")
  }

  @Test func `a failed lookup grants nothing`() {
    var answers = Self.known
    #expect(decide(Self.listed, .control, for: peer(Self.nobody, 60), answers.filter { $0.key != .user("eve") }) == .needsLookup)
    answers[.group("family")] = .failed("the name service does not respond")
    #expect(decide(Self.listed, .control, for: peer(Self.nobody, 60), answers).isGranted)
    #expect(
      decide(Self.listed, .observe, for: peer(Self.nobody, 50), answers)
        == .denied("cannot look up group family: the name service does not respond; try again, or check with getent(1)"))
  }

  @Test func `problems name missing entries and failed lookups`() {
    var answers = Self.known
    answers[.user("eve")] = .failed("input/output error")
    #expect(
      Access(Self.listed).problems(answers) == [
        "cannot look up user eve: input/output error",
        "group no-such-group does not exist: its entry in [control] has no effect",
        "user no-such-user does not exist: its entry in [control] has no effect",
      ])
  }

  @Test func `polkit decides about all other users`() {
    let control = Configuration.Control(lists: .init(control: ["drivers"]), usesPolkit: true)
    #expect(decide(control, .control, for: peer(Self.nobody, 60), Self.known) == .needsLookup)
    #expect(Access(control).queries.isEmpty)
  }

  // MARK: Rights on one device

  private static let family = Configuration.Control(
    lists: .init(observe: ["family"], control: ["drivers"]),
    devices: ["rover": .init(drive: ["kids"], limitsDriving: true), "mirror": .init(observeUsers: ["eve"], controlUsers: ["4711"])])
  private static let names: NameService.Answers = known.merging([.group("kids"): .number(70)]) { $1 }

  private func rights(_ control: Configuration.Control = family, of peer: Peer) -> Rights? {
    if case .granted(let rights) = decide(control, .observe, on: .someDevice, for: peer, Self.names) { rights } else { nil }
  }

  @Test func `lists of a device grant rights on that device only`() throws {
    let guest = try #require(rights(of: peer(1000)))
    #expect(guest == Rights(devices: ["mirror": .observe]) && guest.visibleDevices == ["mirror"])
    #expect(guest.include(.observe, on: .device("mirror")) && !guest.include(.control, on: .device("mirror")))
    #expect(!guest.include(.observe, on: .device("rover")) && !guest.include(.observe, on: .daemon) && !guest.canSee("unknown"))
    // Who may control may drive, unless the device has a list of drivers.
    let owner = try #require(rights(of: peer(Self.nobody, 60)))
    #expect(owner.include(.drive, on: .device("mirror")) && owner.include(.drive, on: .device("unknown")))
    #expect(owner.include(.control, on: .device("rover")) && !owner.include(.drive, on: .device("rover")) && owner.visibleDevices == nil)
    let kid = try #require(rights(of: peer(Self.nobody, 70)))
    #expect(kid == Rights(devices: ["rover": .drive]))
    #expect(rights(of: peer(61_003)) == nil)
  }

  @Test func `lists of all devices and of one add up`() throws {
    let both = try #require(rights(of: peer(1000, 50, 70)))
    #expect(both == Rights(everywhere: .observe, devices: ["rover": .drive, "mirror": .observe]))
    #expect(both.include(.observe, on: .device("ev")) && !both.include(.control, on: .device("ev")))
  }

  @Test(arguments: [[], ["kids"]]) func `with a list of drivers the right to control does not include driving`(_ drivers: [String]) throws {
    let control = Configuration.Control(
      lists: .init(control: ["drivers"], drive: drivers, limitsDriving: true),
      devices: ["rover": .init(controlUsers: ["4711"]), "board": .init(driveUsers: ["eve"], limitsDriving: true)])
    #expect(try #require(rights(control, of: peer(Self.nobody, 60))).everywhere == .control)
    #expect(try #require(rights(control, of: peer(4711))) == Rights(devices: ["rover": .control]))
    #expect(try #require(rights(control, of: peer(1000))) == Rights(devices: ["board": .drive]))
    #expect(rights(control, of: peer(Self.nobody, 70))?.everywhere == (drivers.isEmpty ? nil : .drive))
  }

  @Test func `the message about a missing right names the device and its lists`() {
    func denial(_ right: Right, _ device: String, _ user: Peer) -> String {
      if case .denied(let message) = decide(Self.family, right, on: .device(device), for: user, Self.names) { message } else { "" }
    }
    #expect(
      denial(.drive, "rover", peer(1000, 50))
        == "eve lacks the drive right for rover, which requires group kids; sudo usermod -aG kids eve, then log in again")
    #expect(
      denial(.control, "mirror", peer(1000))
        == "eve lacks the control right for mirror, which requires group drivers or user 4711; sudo usermod -aG drivers eve, "
        + "then log in again")
    let open = Configuration.Control(lists: .init(observeUsers: ["eve"]), devices: ["rover": .init(controlUsers: ["4711"])])
    #expect(
      decide(open, .drive, on: .device("rover"), for: peer(1000), Self.names)
        == .denied(
          "eve lacks the drive right for rover, which requires user 4711; add eve to control-users in [device.rover] of the configuration"))
    #expect(denial(.observe, "ev", peer(1000)).hasPrefix("eve lacks the observe right for ev, which requires group family"))
  }

  /// It named the lists of the device, so that a client could find out the names of devices.
  @Test func `the message to a client that may not see a device is the same if there is no such device`() {
    for user in [peer(1000), peer(61_003), peer(Self.nobody, 70)] {
      for right in [Right.observe, .control, .drive] {
        let messages = ["rover", "mirror", "unknown"].compactMap { device -> String? in
          guard rights(of: user)?.canSee(device) != true,
            case .denied(let message) = decide(Self.family, right, on: .device(device), for: user, Self.names)
          else { return nil }
          return message.replacing(" for \(device)", with: "")
        }
        #expect(messages.count > 1 && Set(messages).count == 1, "\(messages)")
        #expect(messages.allSatisfy { !$0.contains("[device.") && !$0.contains("kids") }, "\(messages)")
      }
    }
  }

  @Test func `problems name the section of a device`() {
    let control = Configuration.Control(
      lists: .init(observe: ["no-such-group"]),
      devices: ["rover": .init(observe: ["no-such-group"], driveUsers: ["no-such-user"], limitsDriving: true)])
    #expect(
      Access(control).problems(Self.known) == [
        "group no-such-group does not exist: its entry in [control] has no effect",
        "group no-such-group does not exist: its entry in [device.rover] has no effect",
        "user no-such-user does not exist: its entry in [device.rover] has no effect",
      ])
  }
}

extension Access.Decision {
  fileprivate var isGranted: Bool { if case .granted = self { true } else { false } }
}
