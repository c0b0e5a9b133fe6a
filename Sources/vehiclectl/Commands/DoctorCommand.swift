// doctor: findings of vehiclectl itself, then those of the daemon. Exits with 1 if a check has failed, 3 if the daemon is not running.

import ArgumentParser
import Protocols
import Varlink

struct DoctorCommand: Subcommand {
  static let configuration = CommandConfiguration(
    commandName: "doctor",
    abstract: "Diagnose problems and suggest fixes.",
    discussion: """
      Checks the systemd unit, socket, clock, disk, serial ports, Bluetooth and adapters. Changes nothing. The exit status is 1 if a check \
      has failed, 3 if the daemon is not running.
      """)

  @OptionGroup var common: CommonOptions

  func perform(_ output: Output) throws {
    var findings = LocalChecks.findings(socket: common.socketPath)
    var failure: Failure?
    do throws(Failure) {
      findings += try common.connect(output).call(Contract.Diagnose.self, NoParameters()).findings
    } catch {
      failure = error
    }
    if output.json {
      output.json(["findings": .array(findings.map { JSON($0) })])
    } else {
      output.lines(findings.map { Self.line($0, paint: output.paint) })
    }
    // The findings may have reported the failure already.
    if let failure, !output.json, findings.contains(where: { $0.subject == "socket" && $0.state == "failed" }) {
      throw ExitCode(failure.exitCode)
    }
    if let failure { throw failure }
    if findings.contains(where: { $0.state == "failed" }) { throw ExitCode.failure }
  }

  static func line(_ finding: Contract.Finding, paint: (String, Style) -> String) -> String {
    let style: Style = finding.state == "ok" ? .good : finding.state == "failed" ? .bad : .bold
    let state = paint(Output.oneLine(finding.state), style) + String(repeating: " ", count: max(0, 7 - finding.state.count))
    return state + Output.oneLine("  \(finding.subject): \(finding.text)\(finding.remedy.map { "; \($0)" } ?? "")")
  }
}
