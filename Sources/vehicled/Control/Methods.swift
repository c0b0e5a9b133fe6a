// Dispatches the calls that arrive on the socket, after the access check, to one short function per method. These functions are in
// ReadMethods.swift, ControlMethods.swift, Statistics.swift and LogStream.swift.

import Protocols
import ServiceRuntime
import Varlink

@Loop final class Methods {
  let hub: DeviceHub
  let blueZ: BlueZ
  /// The state directory.
  let directory: String
  let admission: Admission
  let scheduler = CallScheduler()
  /// The number of calls so far.
  private(set) var calls = 0
  /// The access rules. A change discards cached grants, and checks every stream again.
  var access: Access {
    didSet {
      accessGeneration += 1
      admission.forgetGrants()
      recheckStreams()
    }
  }
  private(set) var accessGeneration = 0
  let nameService: NameService
  let polkit = Polkit(SystemBus())
  /// Reloads the configuration and returns what changed; set by the daemon.
  var reload: @Loop () -> Result<Contract.Reload.Result, ContractError> = { .success(.init(changed: [])) }

  init(
    hub: DeviceHub, access: Access, blueZ: BlueZ, directory: String, nameService: NameService = NameService(),
    admission: Admission = Admission()
  ) {
    self.nameService = nameService
    self.admission = admission
    self.hub = hub
    self.directory = directory
    self.blueZ = blueZ
    self.access = access
    nameService.changed = { [weak self] in self?.recheckStreamsAfterNameChange() }
  }

  /// The right that a method requires, on the daemon or on the devices that it looks up, and its implementation.
  typealias Handler = (right: Right?, scope: Scope, run: @Loop (Methods) -> (Call) throws -> Void)

  /// The handlers by method name; a test compares them with the interface definition.
  static let handlers: [String: Handler] = [
    VarlinkService.GetInfo.name: (nil, .daemon, getInfo),
    VarlinkService.GetInterfaceDescription.name: (nil, .daemon, getInterfaceDescription),
    Contract.Status.name: (.observe, .someDevice, status),
    Contract.Describe.name: (.observe, .someDevice, describe),
    Contract.Get.name: (.observe, .someDevice, get),
    Contract.Set.name: (.control, .someDevice, set),
    Contract.Call.name: (.control, .someDevice, run),
    Contract.Watch.name: (.observe, .someDevice, watch),
    Contract.Drive.name: (.drive, .someDevice, drive),
    Contract.Scan.name: (.control, .daemon, scan),
    Contract.Diagnose.name: (.observe, .daemon, diagnose),
    Contract.Statistics.name: (.observe, .daemon, statistics),
    Contract.Record.name: (.observe, .someDevice, record),
    Contract.Connect.name: (.control, .someDevice, connect),
    Contract.Disconnect.name: (.control, .someDevice, disconnect),
    Contract.Reload.name: (.control, .daemon, reloadConfiguration),
    Contract.LogLevel.name: (.control, .daemon, logLevel),
    Contract.Log.name: (.observe, .someDevice, log),
  ]

  func answer(_ call: Call) {
    calls += 1
    guard let handler = Self.handlers[call.request.method] else { return call.fail(Self.unknownMethod(call.request.method)) }
    guard let right = handler.right else { return answer(call, handler) }
    call.right = right
    if call.usePolkitGrant(of: right) { return answer(call, handler) }
    let device = handler.scope == .someDevice ? call.request.text(of: "device") : nil
    let scope = device.map { .device($0) } ?? handler.scope
    switch access.decide(right, on: scope, for: call.peer, nameService.cachedAnswers) {
    case .granted(let rights):
      call.grant(rights)
      answer(call, handler)
    case .denied(let missing): call.fail(.permissionDenied(missing: missing))
    case .needsLookup:
      if let device = drivenDevice(of: call) {
        call.rights = Rights(devices: [device: .drive])
        return answer(call, handler)
      }
      guard let peer = call.peer else { return call.fail(.permissionDenied()) }
      let generation = accessGeneration
      call.cancelDecision = authorize(right, on: scope, for: peer) { [weak self] decision in
        call.resume {
          guard let self, call.isAlive else { return }
          // The rules may have changed while the lookup ran.
          if generation != self.accessGeneration {
            self.calls -= 1
            return self.answer(call)
          }
          switch decision {
          case .granted(let rights):
            call.grant(rights, cached: self.access.usesPolkit)
            self.answer(call, handler)
          case .denied(let missing): call.fail(.permissionDenied(missing: missing))
          case .needsLookup: call.fail(.permissionDenied())
          }
        }
      }
    }
  }

  private func answer(_ call: Call, _ handler: Handler) {
    do {
      try handler.run(self)(call)
    } catch let error as ContractError {
      call.fail(error)
    } catch {
      call.fail(.deviceError(device: "", code: .internal, message: "\(error)"))
    }
  }

  private static func unknownMethod(_ method: String) -> ContractError {
    let interface = String(method.prefix(upTo: method.lastIndex(of: ".") ?? method.startIndex))
    return Interface.all.contains { $0.name == interface } ? .methodNotFound(method: method) : .interfaceNotFound(interface: interface)
  }

  // MARK: org.varlink.service

  private func getInfo(_ call: Call) throws {
    _ = try call.request.parameters(as: NoParameters.self)
    call.reply(
      VarlinkService.GetInfo.Result(
        vendor: "vehicled", product: "vehicled", version: Protocols.version, url: "",
        interfaces: Interface.all.map(\.name)))
  }

  private func getInterfaceDescription(_ call: Call) throws {
    let name = try call.request.parameters(as: VarlinkService.GetInterfaceDescription.Parameters.self).interface
    guard let interface = Interface.all.first(where: { $0.name == name }) else { throw ContractError.interfaceNotFound(interface: name) }
    call.reply(VarlinkService.GetInterfaceDescription.Result(description: interface.text))
  }
}
