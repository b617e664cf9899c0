// Nothing here sends mail, and only Cloudflare has this module.
export class EmailMessage {}
